"""Causes beside the resource: planted in profiles, at three sizes each."""

import pytest

from asap.diagnosis import diagnose
from asap.profiles import Operation, Profile

FILLER = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n"
PLANTED = {
    "unfused_attention": "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, float>",
    "layout_copies": "void cudnn::ops::nchwToNhwcKernel<float, float>",
    "float32_products": "ampere_sgemm_128x64_nn",
    "misaligned_products": "cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_tn_align2",
    "pageable_copies": "Memcpy HtoD (Pageable -> Device)",
    "unfused_elementwise": "void at::native::vectorized_elementwise_kernel<4>",
    "unfused_optimizer": "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>",
    "separate_cross_entropy": "void at::native::nll_loss_forward_reduce_cuda_kernel_2d<float>",
}


def _diagnosed(name, share, **facts):
    planted = Operation(name=name, category="kernel", fraction=share, **facts)
    filler = Operation(name=FILLER, category="matmul", fraction=0.9 - share, bound="compute")
    return diagnose(Profile(source="test", operations=(planted, filler)))


@pytest.mark.parametrize("share", [0.05, 0.2, 0.6])
@pytest.mark.parametrize("cause", PLANTED)
def test_a_planted_cause_is_named_first_with_its_bound(cause, share):
    first = _diagnosed(PLANTED[cause], share).causes[0]
    assert (first.name, first.share) == (cause, pytest.approx(share))
    assert 0 < first.gain <= first.share


@pytest.mark.parametrize("kind", ["all-gather", "all-reduce", "all-to-all", "send-recv"])
def test_exposed_collectives_have_a_cause_each(kind):
    causes = _diagnosed("kernel", 0.3, collective=kind).causes
    assert [cause.certainty for cause in causes] == ["stated"]


def test_what_is_rare_or_fused_is_no_cause():
    assert not _diagnosed(PLANTED["unfused_attention"], 0.02).causes
    names = ("softmax_warp_forward", "flash_fwd_kernel")
    both = tuple(Operation(name=name, category="kernel", fraction=0.4) for name in names)
    assert not diagnose(Profile(source="test", operations=both)).causes
