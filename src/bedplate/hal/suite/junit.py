"""A run as JUnit XML, for what reads test results and knows nothing of certificates.

The form is the one that Jenkins and GitLab read: `testsuites` of `testsuite`
(one for each device) of `testcase`, which is passed when it is empty and else
holds one `failure` or `skipped` with its reason. NOT RUN is skipped, never
passed; so is a failure that is expected, which then says until when.

Source: the JUnit schema of the Jenkins xunit plugin, junit-10.xsd.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

from bedplate.hal.suite.judge import Expected

# What XML 1.0 cannot hold, not even as a reference.
_UNFIT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(certificates: Sequence[Mapping[str, Any]], expected: Iterable[Expected] = ()) -> str:
    """The XML text of certificates of one run."""
    known = {(entry.backend, entry.case): entry for entry in expected}
    root = ElementTree.Element("testsuites", name="bedplate hal conform")
    for certificate in certificates:
        root.append(_suite(certificate, known))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode", xml_declaration=False)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + text + "\n"


def _suite(
    certificate: Mapping[str, Any], known: Mapping[tuple[str, str], Expected]
) -> ElementTree.Element:
    moment = datetime.fromtimestamp(certificate["time_ns"] / 1e9, UTC)
    suite = ElementTree.Element(
        "testsuite",
        name=_fit(f"{certificate['device_id']} {certificate['device']}"),
        timestamp=moment.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name in ("driver", "abi", "suite", "tier", "library_sha256"):
        ElementTree.SubElement(properties, "property", name=name, value=_fit(certificate[name]))
    cases = [
        _case(case, known.get((certificate["backend"], case["name"])))
        for case in certificate["cases"]
    ]
    suite.extend(cases)
    suite.set("tests", str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("errors", "0")
    return suite


def _case(case: Mapping[str, Any], expected: Expected | None) -> ElementTree.Element:
    capability, _, name = case["name"].partition(".")
    element = ElementTree.Element("testcase", classname=f"hal.{capability}", name=name)
    reason = _fit(case["reason"] or "")
    if case["verdict"] == "not_run":
        ElementTree.SubElement(element, "skipped", message=f"NOT RUN: {reason}")
    elif case["verdict"] == "fail" and expected is not None:
        words = f"expected to fail until {expected.expires}: {expected.reason}; {reason}"
        ElementTree.SubElement(element, "skipped", message=_fit(words))
    elif case["verdict"] == "fail":
        failure = ElementTree.SubElement(element, "failure", message=reason, type="CaseFailed")
        failure.text = reason
    return element


def _fit(text: object) -> str:
    return _UNFIT.sub("\ufffd", str(text))
