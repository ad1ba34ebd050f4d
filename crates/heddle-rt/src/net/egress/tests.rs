//! The policy as a table.

use super::*;

#[test]
fn every_address_is_of_the_sort_that_a_connection_would_reach() {
    let table = [
        ("93.184.216.34", Sort::Public),
        ("2606:2800:220:1::1", Sort::Public),
        ("127.0.0.1", Sort::Loopback),
        ("127.255.255.254", Sort::Loopback),
        ("::1", Sort::Loopback),
        ("::ffff:127.0.0.1", Sort::Loopback),
        ("::127.0.0.1", Sort::Loopback),
        ("10.0.0.1", Sort::Private),
        ("172.16.0.1", Sort::Private),
        ("172.15.0.1", Sort::Public),
        ("172.32.0.1", Sort::Public),
        ("192.168.1.1", Sort::Private),
        ("100.64.0.1", Sort::Private),
        ("100.63.0.1", Sort::Public),
        ("100.128.0.1", Sort::Public),
        ("fd12:3456::1", Sort::Private),
        ("fec0::1", Sort::Private),
        ("::ffff:10.1.2.3", Sort::Private),
        ("64:ff9b::10.1.2.3", Sort::Private),
        ("64:ff9b:1::a01:203", Sort::Private),
        ("2002:a01:203::1", Sort::Private),
        ("::ffff:0:10.1.2.3", Sort::Private),
        ("169.254.1.1", Sort::LinkLocal),
        ("fe80::1", Sort::LinkLocal),
        ("febf::1", Sort::LinkLocal),
        ("169.254.169.254", Sort::Metadata),
        ("::ffff:169.254.169.254", Sort::Metadata),
        ("64:ff9b::169.254.169.254", Sort::Metadata),
        ("2002:a9fe:a9fe::", Sort::Metadata),
        ("169.254.170.2", Sort::Metadata),
        ("100.100.100.200", Sort::Metadata),
        ("168.63.129.16", Sort::Metadata),
        ("192.0.0.192", Sort::Metadata),
        ("fd00:ec2::254", Sort::Metadata),
        ("fd20:ce::254", Sort::Metadata),
        ("0.0.0.0", Sort::Unusable),
        ("0.1.2.3", Sort::Unusable),
        ("::", Sort::Unusable),
        ("::ffff:0.0.0.0", Sort::Unusable),
        ("224.0.0.1", Sort::Unusable),
        ("240.0.0.1", Sort::Unusable),
        ("255.255.255.255", Sort::Unusable),
        ("ff02::1", Sort::Unusable),
    ];
    for (address, expected) in table {
        assert_eq!(sort(address.parse().unwrap()), expected, "{address}");
    }
}

#[test]
fn each_permission_opens_its_own_sort_and_no_other() {
    let nothing = Egress {
        allow_loopback: false,
        allow_private: false,
        allow_link_local: false,
        ..Egress::ANYWHERE
    };
    let policies = [
        (nothing.clone(), [true, false, false, false, false, false]),
        (
            Egress {
                allow_loopback: true,
                ..nothing.clone()
            },
            [true, true, false, false, false, false],
        ),
        (
            Egress {
                allow_private: true,
                ..nothing.clone()
            },
            [true, false, true, false, false, false],
        ),
        (
            Egress {
                allow_link_local: true,
                ..nothing
            },
            [true, false, false, true, true, false],
        ),
        (Egress::default(), [true, true, true, false, false, false]),
        (Egress::ANYWHERE, [true, true, true, true, true, false]),
    ];
    let addresses = [
        "93.184.216.34",
        "127.0.0.1",
        "10.0.0.1",
        "169.254.1.1",
        "169.254.169.254",
        "0.0.0.0",
    ];
    for (policy, expected) in policies {
        let allowed = addresses.map(|address| policy.check(address.parse().unwrap()).is_ok());
        assert_eq!(allowed, expected, "{policy:?}");
    }
}

#[test]
fn a_refusal_names_the_address_as_it_was_given() {
    let denied = Egress::default()
        .check("::ffff:169.254.169.254".parse().unwrap())
        .unwrap_err();
    assert_eq!(
        denied.to_string(),
        "connections to ::ffff:169.254.169.254, an address of cloud metadata, are not allowed unless egressAllow has it"
    );
}

#[test]
fn a_refusal_names_the_range_that_decided() {
    let policy = Egress {
        deny: vec![
            "10.0.0.0/8".parse().unwrap(),
            "10.1.0.0/16".parse().unwrap(),
        ],
        ..Egress::default()
    };
    let denied = |address: &str| {
        policy
            .check(address.parse().unwrap())
            .unwrap_err()
            .to_string()
    };
    let refused =
        "connections to 10.1.2.3, a private address, are not allowed by egressDeny 10.1.0.0/16";
    assert_eq!(denied("10.1.2.3"), refused);
    let refused = "connections to 0.0.0.0, an address that belongs to nobody, are not allowed";
    assert_eq!(denied("0.0.0.0"), refused);
}

#[test]
fn the_longer_of_two_ranges_decides_and_sorts_decide_the_rest() {
    let ranges = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let policy = Egress {
        allow: ranges(&["169.254.10.0/24", "10.1.0.0/16", "10.9.9.9", "0.0.0.0/0"]),
        deny: ranges(&[
            "10.0.0.0/8",
            "10.1.7.0/24",
            "10.9.9.9/32",
            "fd00::/8",
            "93.184.216.34",
        ]),
        ..Egress::default()
    };
    for (address, allowed) in [
        ("169.254.10.7", true),
        ("10.1.2.3", true),
        ("::ffff:10.1.2.3", true),
        ("10.1.7.1", false),
        ("10.2.0.1", false),
        ("::ffff:10.2.0.1", false),
        // Two of the same length.
        ("10.9.9.9", false),
        ("93.184.216.34", false),
        ("93.184.216.35", true),
        ("fd12::1", false),
        ("fe80::1", false),
        ("2606:2800:220:1::1", true),
        // Nobody's address, whoever allows it.
        ("0.0.0.0", false),
        ("224.0.0.1", false),
    ] {
        assert_eq!(
            policy.check(address.parse().unwrap()).is_ok(),
            allowed,
            "{address}"
        );
    }
    let mut everything = Egress::ANYWHERE;
    everything.deny = ranges(&["0.0.0.0/0", "::/0"]);
    for address in ["127.0.0.1", "10.0.0.1", "93.184.216.34", "::1", "fd12::1"] {
        assert!(
            everything.check(address.parse().unwrap()).is_err(),
            "{address}"
        );
    }
}

#[test]
fn a_range_is_an_address_and_a_length_that_fits() {
    for text in [
        "10.0.0.0/33",
        "::/129",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "host/8",
        "",
        "/8",
        "10.0.0.0/8/8",
    ] {
        let error = text.parse::<Prefix>().unwrap_err();
        assert!(
            error.to_string().contains("no range of addresses"),
            "{error}"
        );
    }
    for (text, printed) in [
        ("10.1.2.3", "10.1.2.3/32"),
        ("fd00::/8", "fd00::/8"),
        ("::1", "::1/128"),
    ] {
        assert_eq!(text.parse::<Prefix>().unwrap().to_string(), printed);
    }
}
