package yamlfile

import "testing"

// The parser of YAML has two stages, one of which counts lines from 0.
func TestWhatIsNotYAMLIsNamedByItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 2\nports: [80\n":     "f.yaml:3: not YAML: did not find expected ',' or ']'",
		"a: 1\nb: {x: 1\nc: 2\n":       "f.yaml:2: not YAML: did not find expected ',' or '}'",
		"nodes: {a: host\nlinks: []\n": "f.yaml:2: not YAML: did not find expected ',' or '}'",
		"[1, 2\n":                      "f.yaml:1: not YAML: did not find expected ',' or ']'",
		"a: 1\nb: 1\n}\n":              "f.yaml:3: not YAML: did not find expected key",
		"a:\n  b: 1\n c: 1\n":          "f.yaml:3: not YAML: did not find expected key",
		"a: 1\nc: 2\n b: 2\n":          "f.yaml:3: not YAML: mapping values are not allowed in this context",
		"x:\n\ty: 1\n":                 "f.yaml:2: not YAML: found character that cannot start any token",
		"a: 1\nb:\n - 1\n 2\n":         "f.yaml:4: not YAML: could not find expected ':'",
		"a: 1\nb: *nobody\n":           "f.yaml:1: not YAML: unknown anchor 'nobody' referenced",
	} {
		r := Reader{Path: "f.yaml"}
		r.Tree([]byte(text), "anything")
		if err := r.Err(); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
