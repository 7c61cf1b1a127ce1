package sid

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

func anyService(t *rapid.T) ServiceID {
	return ServiceID{
		SS:     rapid.Uint32Min(1).Draw(t, "ss"),
		Suffix: Suffix(rapid.Uint64Range(ReservedSuffixes, 1<<63-1).Draw(t, "suffix")),
	}
}

func TestServiceIDTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := anyService(t)
		back, err := ParseServiceID(id.String())
		if err != nil || back != id {
			t.Fatalf("%v became %v, %v", id, back, err)
		}
	})
}

func TestBadServiceIDsAreRefused(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "want 8 and 16",
		"00000001-12":               "want 8 and 16",
		"0000000g-00c0ffee00c0ffee": "not hexadecimal",
		"00000000-00c0ffee00c0ffee": "reserved", // ssID 0
		"00000001-0000000000000001": "reserved", // a host's own suffix
		"00000001-80c0ffee00c0ffee": "reserved", // a socketID
	} {
		if _, err := ParseServiceID(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseServiceID(%q) = %v, want an error about %q", in, err, want)
		}
	}
}

func TestServiceAddressesAreOneToOne(t *testing.T) {
	space := DefaultSpace()
	rapid.Check(t, func(t *rapid.T) {
		id := anyService(t)
		addr := space.ServiceAddr(id)
		back, ok := space.ServiceOf(addr)
		if !ok || back != id || !space.Services.Contains(addr) || Low(addr) != uint64(id.Suffix) {
			t.Fatalf("%v became %v, then %v, %v", id, addr, back, ok)
		}
	})
	if _, ok := space.ServiceOf(netip.MustParseAddr("fd5d:0:1:101::1")); ok {
		t.Error("a locator is taken for a service")
	}
}

func TestSocketIDsAndSuffixesNeverMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewSocketID(rapid.Uint64().Draw(t, "random"))
		if !s.Valid() || Suffix(s).Valid() {
			t.Fatalf("%v: valid socketID %v, valid suffix %v", s, s.Valid(), Suffix(s).Valid())
		}
	})
}

func TestLocatorIsTheUpperHalf(t *testing.T) {
	space := DefaultSpace()
	rapid.Check(t, func(t *rapid.T) {
		l := space.Locator(rapid.Uint16().Draw(t, "host"))
		low := rapid.Uint64().Draw(t, "low")
		addr := l.Addr(low)
		if LocatorOf(addr) != l || Low(addr) != low || !l.Prefix().Contains(addr) || !space.Owns(l) {
			t.Fatalf("%v with %#x is %v", l, low, addr)
		}
	})
	if got := space.Locator(0x101).Host().String(); got != "fd5d:0:1:101::1" {
		t.Errorf("a host's own address is %s", got)
	}
}

func TestSpaceRefusesBadPrefixes(t *testing.T) {
	good := DefaultSpace()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Space){
		"services prefix":          func(s *Space) { s.Services = netip.MustParsePrefix("10.0.0.0/8") },
		"prefix ::/32 lies":        func(s *Space) { s.Services = netip.MustParsePrefix("::/32") },
		"prefix fe80::/48 lies":    func(s *Space) { s.AS = netip.MustParsePrefix("fe80::/48") },
		"identities prefix ff02::": func(s *Space) { s.Identities = netip.MustParsePrefix("ff02::/64") },
		"exactly 48 bits":          func(s *Space) { s.AS = netip.MustParsePrefix("fd5d::/40") },
		"exactly 64 bits":          func(s *Space) { s.Identities = netip.MustParsePrefix("fd5e::/63") },
		"overlaps":                 func(s *Space) { s.AS = netip.MustParsePrefix("fd5c:0:1::/48") },
		"want an IPv6":             func(s *Space) { s.AS = netip.Prefix{} },
	} {
		s := good
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error about %q", s, err, want)
		}
	}
}

func TestProtoNames(t *testing.T) {
	for _, p := range []Proto{TCP, UDP} {
		if back, err := ParseProto(p.String()); err != nil || back != p {
			t.Errorf("%v became %v, %v", p, back, err)
		}
	}
	if _, err := ParseProto("sctp"); err == nil {
		t.Error("sctp is taken for a protocol that services have instances on")
	}
	if got := Proto(132).String(); got != "132" {
		t.Errorf("an unknown protocol prints as %q", got)
	}
}
