package names

import "testing"

func TestNamesOfMembersAreThoseThatAnyControllerTakes(t *testing.T) {
	for name, good := range map[string]bool{"s1": true, "web-7.rack2": true, "": false, "A": false, "A B": false, "ü": false, "a b": false, "-a": false, "a.": false, "a/b": false, "a\x00": false, "a\n": false} {
		if err := CheckMember(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}
