from __future__ import annotations

import pytest

from camgraph.stages.sinks.delivery.web.web_addresses import web_address, why_not_public


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1", "an address of this machine"),
        ("127.9.9.9", "an address of this machine"),
        ("0.0.0.0", "an address of this machine"),
        ("::1", "an address of this machine"),
        ("::", "an address of this machine"),
        ("::ffff:127.0.0.1", "an address of this machine"),
        ("64:ff9b::7f00:1", "an address of this machine"),
        ("2002:7f00:1::", "an address of this machine"),
        ("169.254.169.254", "a link-local address"),
        ("fe80::1%eth0", "a link-local address"),
        ("::ffff:169.254.169.254", "a link-local address"),
        ("10.1.2.3", "a private or reserved address"),
        ("172.16.0.1", "a private or reserved address"),
        ("192.168.1.1", "a private or reserved address"),
        ("100.64.0.1", "a private or reserved address"),
        ("192.0.2.1", "a private or reserved address"),
        ("224.0.0.1", "a private or reserved address"),
        ("255.255.255.255", "a private or reserved address"),
        ("fd00::1", "a private or reserved address"),
        ("fec0::1", "a private or reserved address"),
        ("::127.0.0.1", "an address of this machine"),
        ("::10.0.0.1", "a private or reserved address"),
        ("64:ff9b:1::a00:1", "a private or reserved address"),
        ("192.0.0.8", "a private or reserved address"),
        ("192.88.99.1", "a private or reserved address"),
        ("ff02::1", "a private or reserved address"),
        ("64:ff9b::a00:1", "a private or reserved address"),
        ("8.8.8.8", ""),
        ("2606:4700::1111", ""),
        ("::ffff:8.8.8.8", ""),
        ("64:ff9b::808:808", ""),
    ],
)
def test_only_the_public_internet_is_public(address, why) -> None:
    assert why_not_public(address) == why


@pytest.mark.parametrize(
    ("url", "shown", "target", "host_header"),
    [
        ("https://a.test/x/y?z=1#frag", "https://a.test", "/x/y?z=1", "a.test"),
        ("https://a.test", "https://a.test", "/", "a.test"),
        ("http://a.test:8080/", "http://a.test:8080", "/", "a.test:8080"),
        ("https://[2001:db8::1]:444/a", "https://[2001:db8::1]:444", "/a", "[2001:db8::1]:444"),
        ("https://A.test:443/", "https://a.test", "/", "a.test"),
    ],
)
def test_the_parts_of_a_url(url, shown, target, host_header) -> None:
    address = web_address(url)
    assert (str(address), address.target, address.host_and_port) == (shown, target, host_header)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.test/hook-s3cret",
        "ftp://a.test/hook-s3cret",
        "https:///hook-s3cret",
        "https://viewer:s3cret@a.test/",
        "https://a.test:0/hook-s3cret",
        "https://a.test:99999/hook-s3cret",
        "https://a.test/hook s3cret",
        "https://a.test/hook\r\nX: s3cret",
        "https://bücher.test/s3cret",
        "https://[::1/s3cret",
    ],
)
def test_what_is_no_url_is_not_repeated(url) -> None:
    with pytest.raises(ValueError, match="expected https://HOST") as refused:
        web_address(url)
    assert "s3cret" not in str(refused.value)
