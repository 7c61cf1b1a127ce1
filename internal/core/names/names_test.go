package names

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
	"scaffold.dev/scaffold/sid"
)

func TestNamesAreWhatDNSCarries(t *testing.T) {
	for name, want := range map[string]string{ // value: the clean name, or what the error speaks of
		"web":                           "web",
		"Web.Shop.":                     "web.shop",
		"a_b-c9":                        "a_b-c9",
		"":                              "no name",
		"a..b":                          "empty label",
		"-a":                            "hyphen",
		"a b":                           "not allowed",
		"bücher":                        "not allowed",
		"a\x1b[31m":                     "not allowed",
		strings.Repeat("a", 64):         "at most 63",
		strings.Repeat("a", 300):        "at most 253",
		strings.Repeat("a.", 124) + "b": strings.Repeat("a.", 124) + "b",
		strings.Repeat("a.", 125) + "b": "at most 253",
	} {
		got, err := Clean(name, "svc")
		if err != nil {
			got = err.Error()
			if strings.Contains(got, "\x1b") || len(got) > 200 {
				t.Errorf("the error is no clean line: %q", got)
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("Clean(%.20q): %s, want %s", name, got, want)
		}
	}
}

func TestADomainThatWasTypedIsTakenOff(t *testing.T) {
	table := NewTable("shop.svc")
	r, err := table.Check(record("Web.Shop.svc.", 1, 0x10000))
	if err != nil || r.Name != "web" {
		t.Fatalf("%q (%v), want web", r.Name, err)
	}
	if err := table.Add(r); err != nil {
		t.Fatal(err)
	}
	table.put(record("old.shop.svc", 1, 0x20000)) // made before domains were taken off
	for typed, want := range map[string]string{"web": "web", "web.shop.svc": "web", "WEB.shop.SVC.": "web", "old.shop.svc": "old.shop.svc"} {
		if got, err := table.Named(typed); err != nil || got.Name != want {
			t.Errorf("%s is %q (%v), want %s", typed, got.Name, err, want)
		}
	}
	for _, typed := range []string{"shop.svc", "web.svc", "old"} {
		if got, err := table.Named(typed); err == nil {
			t.Errorf("%s is %s", typed, got.Name)
		}
	}
	if _, err := table.Check(record("web.shop.svc", 1, 0x30000)); !errors.Is(err, ErrExists) {
		t.Errorf("web a second time, with its domain: %v", err)
	}
}

func record(name string, ss uint32, suffix sid.Suffix) Record {
	return Record{Name: name, ID: sid.ServiceID{SS: ss, Suffix: suffix}}
}

func TestASuffixBelongsToOneService(t *testing.T) {
	table := NewTable("svc")
	if err := table.Add(record("web", 1, 0x10000)); err != nil {
		t.Fatal(err)
	}
	for _, r := range []Record{record("other", 2, 0x10000), record("WEB", 1, 0x20000)} {
		if err := table.Add(r); !errors.Is(err, ErrExists) {
			t.Errorf("Add(%v): %v, want a refusal", r, err)
		}
	}
	if err := table.Add(record("low", 1, 1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("a reserved suffix: %v, want ErrInvalid", err)
	}
	table.Remove("web")
	if err := table.Add(record("other", 2, 0x10000)); err != nil {
		t.Errorf("after the removal the suffix is still taken: %v", err)
	}
}

func TestAllocateSkipsWhatIsTakenOrReserved(t *testing.T) {
	table := NewTable("svc")
	if err := table.Add(record("web", 1, 0x10000)); err != nil {
		t.Fatal(err)
	}
	bits := []uint64{0, 1 << 17 /* taken, shifted */, 5, 1 << 18}
	id := table.Allocate(7, func() uint64 { b := bits[0]; bits = bits[1:]; return b })
	if want := (sid.ServiceID{SS: 7, Suffix: 1 << 17}); id != want {
		t.Errorf("got %v, want %v", id, want)
	}
}

func TestOldVersionsDoNotReplaceNewOnes(t *testing.T) {
	table := NewTable("svc")
	if err := table.Add(record("web", 1, 0x10000)); err != nil {
		t.Fatal(err)
	}
	second, err := table.With("web", Policy{Weight: 5}, Access{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	third := second
	third.Version++
	if err := table.Replace(third); err != nil {
		t.Fatal(err)
	}
	if err := table.Replace(second); err == nil {
		t.Error("version 1 replaced version 2")
	}
}

func TestPoliciesAreChecked(t *testing.T) {
	for _, good := range []Policy{{}, {Ready: "tcp"}, {Ready: "http:/ok"}, {Ready: "exec:true"}, {Datagrams: "unset", Weight: 65535, DSCP: 63}, {Failover: "continue", Drain: "shed"}, {Failover: "reset", Drain: "wait"}} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []Policy{{Ready: "http:x"}, {Ready: "exec:"}, {Ready: "x"}, {Weight: 65536}, {DSCP: 64}, {Datagrams: "x"}, {Drain: "x"}, {Failover: "x"}, {Patience: MaxPatience + 1}} {
		if bad.Check() == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestPatienceIsADurationOfAMinuteAtMost(t *testing.T) {
	for text, want := range map[string]uint32{"0s": 0, "0": 0, "1500ms": 1500, "1m": MaxPatience} {
		if ms, err := ParsePatience(text); err != nil || ms != want {
			t.Errorf("%q: %d ms, %v, want %d", text, ms, err, want)
		}
	}
	for _, bad := range []string{"", "banana", "-5s", "1m1s", "5", "99999h"} {
		if ms, err := ParsePatience(bad); err == nil {
			t.Errorf("%q is %d ms", bad, ms)
		}
	}
}

func FuzzParsePatience(f *testing.F) {
	f.Add("1.5s")
	f.Fuzz(func(t *testing.T, text string) {
		if ms, err := ParsePatience(text); err == nil && (Policy{Patience: ms}).Check() != nil {
			t.Errorf("%q is %d ms, which no policy takes", text, ms)
		}
	})
}

func TestEveryRecordIsFoundByNameAndByID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, want := NewTable("svc"), map[string]sid.ServiceID{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := rapid.StringMatching(`[a-c]{1,2}`).Draw(t, "name")
			if rapid.Bool().Draw(t, "remove") {
				table.Remove(name)
				delete(want, name)
				continue
			}
			r := record(name, 1, sid.Suffix(rapid.Uint64Range(0x10000, 0x10008).Draw(t, "suffix")))
			if table.Add(r) == nil {
				want[name] = r.ID
			}
		}
		if len(table.All()) != len(want) {
			t.Fatalf("%d records, want %d", len(table.All()), len(want))
		}
		for name, id := range want {
			byName, err := table.Named(name)
			byID, ok := table.ByID(id)
			if err != nil || !ok || !reflect.DeepEqual(byName, byID) || byName.ID != id {
				t.Fatalf("%s: by name %v (%v), by serviceID %v (%v)", name, byName, err, byID, ok)
			}
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("web.shop")
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := Clean(name, "svc")
		if err != nil {
			return
		}
		if again, err := Clean(clean, "svc"); err != nil || again != clean {
			t.Errorf("Clean(%q) = %q, and of that %q, %v", name, clean, again, err)
		}
	})
}
