package topo

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

func TestLabelsAreSpelledPlainly(t *testing.T) {
	n := newNamer()
	for i, c := range []struct{ label, want string }{
		{"Zürich", "zurich"}, {"zurich", "zurich-2"}, {"Zurich 2", "zurich-2-2"}, {"St. Gallen", "st-gallen"}, {"L'Aquila", "laquila"}, {"Łódź", "lodz"}, {"Århus/Ø", "arhus-o"},
		{"", "n8"}, {"東京", "n9"}, {"8", "n8-2"}, {"mgmt", "mgmt-2"}, {"--a--", "a"},
		{"A very long name of a point of presence", "a-very-long-name-of-a-point-of-p"},
		{"A very long name of a point of place", "a-very-long-name-of-a-point-of-2"},
	} {
		if got := n.name(c.label, i+1); got != c.want {
			t.Errorf("%q became %q, want %q", c.label, got, c.want)
		}
	}
}

// labName is what a lab file takes for the name of a node.
var labName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

func TestNamesAreFitForALabAndUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, seen := newNamer(), map[string]bool{}
		word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a", "a-2", "a-2-2", "mgmt", "", "5", "n5", "0000000000000000000000000000000000000"}))
		for i, label := range rapid.SliceOf(word).Draw(t, "labels") {
			name := n.name(label, i+1)
			if !labName.MatchString(name) || seen[name] || name == "mgmt" {
				t.Fatalf("%q became %q; seen %v", label, name, seen)
			}
			seen[name] = true
		}
	})
}
