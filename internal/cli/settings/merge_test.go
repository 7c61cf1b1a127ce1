package settings

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func settings(t testing.TB, text string) (list []Setting) {
	t.Helper()
	var top yaml.Node
	if err := yaml.Unmarshal([]byte(text), &top); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(top.Content[0].Content); i += 2 {
		list = append(list, Setting{top.Content[0].Content[i].Value, *top.Content[0].Content[i+1]})
	}
	return list
}

// TestWhatIsNotTypedStays: of a configuration file nothing changes but what a flag says.
func TestWhatIsNotTypedStays(t *testing.T) {
	for _, c := range []struct{ old, typed, want, changes string }{
		{"network: lab\ntrust: keys\n", "log-level: debug", "network: lab\ntrust: keys\nlog-level: debug\n", "log-level: debug (new)"},
		{"network: lab\ntrust: keys\n", "network: lab", "network: lab\ntrust: keys\n", ""},
		{"# ours\n\nnetwork: lab # the first\n# why\nname: c1\n", "network: other", "# ours\n\nnetwork: other\n# why\nname: c1\n", "network: other (was lab)"},
		{"listen:\n  - a:1\n  - b:2\ntrust: keys\n", "listen: [c3]", "listen: [c3]\ntrust: keys\n", "listen: [c3] (was [a:1, b:2])"},
		{"listen:\n- a:1\n\n# end\nname: x", "pprof: true", "listen:\n- a:1\n\n# end\nname: x\npprof: true\n", "pprof: true (new)"},
		{"uplink: eth0\n", "uplink: [eth0]", "uplink: eth0\n", ""},
		{"", "name: s1", "name: s1\n", "name: s1 (new)"},
		{"# nothing\n", "name: s1", "# nothing\nname: s1\n", "name: s1 (new)"},
	} {
		got, changes, err := Merge("f.yaml", []byte(c.old), settings(t, c.typed))
		if err != nil || string(got) != c.want || strings.Join(changes, "; ") != c.changes {
			t.Errorf("%q with %s: %q, %q, %v; want %q, %q", c.old, c.typed, got, changes, err, c.want, c.changes)
		}
	}
	if _, _, err := Merge("f.yaml", []byte("{network: lab, trust: keys}\n"), settings(t, "network: x")); err == nil || !strings.Contains(err.Error(), "f.yaml:1") {
		t.Errorf("all in one line: %v", err)
	}
}

// FuzzMergeConfig: whatever a file holds, what is merged into it is either refused or said by it afterwards, and nothing
// else has changed.
func FuzzMergeConfig(f *testing.F) {
	for _, text := range []string{"network: lab\ntrust: keys\n", "listen:\n- a\n- b\n", "a: |\n x\n y\nname: q", "{a: b}", "name:\n  x\n", "\"name\": x\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, old string) {
		typed := []Setting{{"name", yaml.Node{Kind: yaml.ScalarNode, Value: "s1"}}}
		text, _, err := Merge("f.yaml", []byte(old), typed)
		if err != nil {
			return
		}
		before, _ := Parse("f.yaml", []byte(old))
		after, err := Parse("f.yaml", text)
		if err != nil {
			t.Fatalf("%q became %q: %v", old, text, err)
		}
		if e := after.Find("name"); e == nil || e.Text() != "s1" && e.Text() != "[s1]" {
			t.Errorf("%q became %q: name is not s1", old, text)
		}
		for _, e := range before.entries {
			if now := after.Find(e.key); e.key != "name" && (now == nil || now.Text() != e.Text()) {
				t.Errorf("%q became %q: %s is lost", old, text, e.key)
			}
		}
	})
}
