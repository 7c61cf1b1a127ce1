package names

import (
	"strings"
	"testing"
)

func TestWhoMayConnectIsCheckedEntryByEntry(t *testing.T) {
	for _, good := range [][]string{nil, {"none"}, {"c1"}, {"service:front.shop", "fd5d:0:1:100::/56", "c1", "::/0", "fd5d::/64"}} {
		if err := (Access{Allow: good}).Check(); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "a b", "service:", "service:a..b", "10.0.0.0/8", "fd5d::1", "fd5d::/65", "c1,c2", "\x1b", "none of them"} {
		err := (Access{Allow: []string{"c1", bad}}).Check()
		if err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if (Access{Allow: []string{"none", "c1"}}).Check() == nil {
		t.Error("none beside others was accepted")
	}
	if (Access{Allow: make([]string, MaxListed+1)}).Check() == nil || (Access{Servers: []string{"A"}}).Check() == nil || (Access{Key: []byte{1}}).Check() == nil {
		t.Error("a list without end, a name in capitals or a short key was accepted")
	}
}

func FuzzParseAllowed(f *testing.F) {
	f.Add("fd5d:0:1:100::/56")
	f.Add("service:web")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAllowed(text)
		if n := 0; err == nil {
			for _, set := range []bool{a.Host != "", a.Service != "", a.Prefix.IsValid()} {
				if set {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%q is %+v", text, a)
			}
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add(FormatKey(make([]byte, 32)))
	f.Fuzz(func(t *testing.T, text string) {
		if key, err := ParseKey(text); err == nil && text != "" && FormatKey(key) != text {
			again, err := ParseKey(FormatKey(key))
			if err != nil || string(again) != string(key) {
				t.Errorf("%q is read as %x and written as %q", text, key, FormatKey(key))
			}
		}
	})
}

func TestWhoMayServe(t *testing.T) {
	a := Access{Servers: []string{"s1", "s2:www-data", "s2:web"}}
	if err := a.checkServers(); err != nil {
		t.Fatal(err)
	}
	for who, may := range map[[2]string]bool{
		{"s1", "root"}: true, {"s1", ""}: true, {"s2", "www-data"}: true, {"s2", "web"}: true,
		{"s2", "root"}: false, {"s2", ""}: false, {"s3", "www-data"}: false,
	} {
		if why := a.MayServe(who[0], who[1]); (why == "") != may {
			t.Errorf("%q: %q, want it to serve: %v", who, why, may)
		}
	}
	if why := (Access{}).MayServe("any", ""); why != "" {
		t.Errorf("without a list: %q", why)
	}
	for _, bad := range []string{"s1:", ":root", "s1:a b", "s1:a:b"} {
		if err := (Access{Servers: []string{bad}}).checkServers(); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
