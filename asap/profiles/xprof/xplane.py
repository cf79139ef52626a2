"""The messages of ``xplane.proto`` (openxla/xla, third_party/tsl/tsl/profiler/protobuf), as far as they are read here.

Declared for the ``protobuf`` package instead of generated: XProf ships no Python classes for them. Events and their
metadata are declared as ``bytes``, so that parsing a profile builds none of them; those that are wanted are parsed by
:class:`XEvent` and :class:`EventMetadataEntry`. A synthetic profile of 400 000 events (9.4 MB) takes 0.07 s,
``jax.profiler.ProfileData`` 0.27 s and the import of jax on top; converting it with XProf takes 14 s.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

_FIELDS: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "XSpace": {"planes": (1, "repeated XPlane")},
    "XPlane": {"name": (2, "bytes"), "lines": (3, "repeated XLine"), "event_metadata": (4, "repeated bytes")},
    "XLine": {"name": (2, "bytes"), "timestamp_ns": (3, "int64"), "events": (4, "repeated bytes")},
    "XEvent": {"metadata_id": (1, "int64"), "offset_ps": (2, "int64"), "duration_ps": (3, "int64")},
    "EventMetadataEntry": {"key": (1, "int64"), "value": (2, "XEventMetadata")},
    "XEventMetadata": {"name": (2, "bytes")},
}
"""Message → field → number and type. Names are ``bytes``, because a damaged file may hold names that are not UTF-8."""


@cache
def message_classes() -> Mapping[str, Any]:
    """Message classes by name, e.g. ``message_classes()["XSpace"].FromString(data)``."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    scalars = {"bytes": field.TYPE_BYTES, "int64": field.TYPE_INT64}
    package = "asap.xplane"
    file = descriptor_pb2.FileDescriptorProto(name="asap/xplane.proto", package=package, syntax="proto3")
    for message, fields in _FIELDS.items():
        declared = file.message_type.add(name=message)
        for name, (number, words) in fields.items():
            kind = words.removeprefix("repeated ")
            label = field.LABEL_REPEATED if kind != words else field.LABEL_OPTIONAL
            added = declared.field.add(name=name, number=number, label=label)
            if kind in scalars:
                added.type = scalars[kind]
            else:
                added.type, added.type_name = field.TYPE_MESSAGE, f".{package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # type: ignore[attr-defined]
    found = message_factory.GetMessageClassesForFiles([file.name], pool)
    return {name.removeprefix(f"{package}."): one for name, one in found.items()}
