"""Fixtures of the agents: those of all rooms that run them, and a certificate that nobody vouches for."""

import datetime

import pytest

from tests.language_models.fixtures import home, log, serving, store, studies

__all__ = ["home", "log", "serving", "store", "studies"]


@pytest.fixture(params=[False, True], ids=["unary", "streamed"])
def stream(request):
    return request.param


@pytest.fixture(scope="session")
def self_signed(tmp_path_factory):
    """A file with a key and a certificate that the key itself signed."""
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = tmp_path_factory.mktemp("tls") / "self-signed.pem"
    path.write_bytes(secret + certificate.public_bytes(pem))
    return path
