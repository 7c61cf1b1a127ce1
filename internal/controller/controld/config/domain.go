package config

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// special are domains with a meaning of their own (RFC 6761, 6762, 7686, 9476): resolvers would not ask us, or
// all that means something else by them would break.
var special = []string{"local", "localhost", "invalid", "onion", "alt", "arpa"}

// checkDomain refuses a domain of which hosts may not say that all else in it does not exist.
func checkDomain(domain string) error {
	for parent := domain; parent != ""; _, parent, _ = strings.Cut(parent, ".") {
		if slices.Contains(special, parent) && parent != "arpa" || parent == "arpa" && domain != "home.arpa" && !strings.HasSuffix(domain, ".home.arpa") {
			return fmt.Errorf("domain %s: %s has a meaning of its own (RFC 6761): take svc, internal, home.arpa or a subdomain that you own, such as svc.example.org", domain, parent)
		}
	}
	if domain != "home.arpa" && public(domain) == domain {
		return fmt.Errorf("domain %s: the Internet's registries have it, and hosts would answer that every name in it which is no service does not exist: take svc, internal, home.arpa or a subdomain that you own, such as svc.example.org", domain)
	}
	return nil
}

// public is the part of a domain under which anybody may have a name; "" where the list knows none.
func public(domain string) string {
	suffix, icann := publicsuffix.PublicSuffix(domain)
	if !icann && !strings.Contains(suffix, ".") {
		return ""
	}
	return suffix
}

// Shadows is the public domain that is hidden from hosts as a whole; "" for one of ours, or a part of one.
func Shadows(domain string) string {
	if suffix := public(domain); suffix == "" || suffix == domain {
		return ""
	}
	if one, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil && one == domain && domain != "home.arpa" {
		return domain
	}
	return ""
}
