package metaphors

import "testing"

func TestMetaphorsAreFoundInsideNames(t *testing.T) {
	for text, want := range map[string]string{
		"func takeBuriedDown()":                "Buried",
		"x.GRAVE":                              "GRAVE",
		"strangers_refused_total":              "strangers",
		"p.lieInWait(":                         "lieInWait",
		"they lie in wait for it":              "lieinwait",
		"// welcomes whoever asks":             "welcomes",
		"two biographies":                      "biographies",
		"their heirloom, a stranger":           "stranger",
		"theirs is gravel; foreign":            "",
		"aggravated, unfarewelled":             "",
		"a storyless day, seatbelts, desktops": "",
	} {
		found := ""
		for _, u := range In(text) {
			found += u.Word
		}
		if found != want {
			t.Errorf("%q: found %q, want %q", text, found, want)
		}
	}
}
