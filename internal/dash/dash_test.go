package dash

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, name string) (*http.Response, string) {
	t.Helper()
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest("GET", name, nil))
	return w.Result(), w.Body.String()
}

func TestThePageMayLoadAndAskItsOwnServerOnly(t *testing.T) {
	for name, kind := range map[string]string{"/": "text/html", "/main.js": "text/javascript", "/style.css": "text/css"} {
		answer, text := get(t, name)
		if answer.StatusCode != 200 || text == "" || !strings.HasPrefix(answer.Header.Get("Content-Type"), kind) {
			t.Errorf("%s: %d %s", name, answer.StatusCode, answer.Header.Get("Content-Type"))
		}
		if p := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none';") || strings.Contains(p, "unsafe") {
			t.Errorf("%s: %s", name, p)
		}
	}
	if answer, _ := get(t, "/../dash.go"); answer.StatusCode == 200 {
		t.Error("it serves more than the page")
	}
}

var (
	outside = regexp.MustCompile(`(https?:)?//[a-z0-9.-]+\.[a-z]+`)
	named   = regexp.MustCompile(`(?:from|src=|href=) ?"([^"]+)"`)
	inline  = regexp.MustCompile(`(?i)<script>|style="| on[a-z]+="|innerHTML|insertAdjacentHTML|document\.write|\beval\(`)
)

func TestThePageIsWholeAndNeedsNothingFromElsewhere(t *testing.T) {
	all, err := fs.Glob(files, "page/*")
	if err != nil || len(all) < 3 {
		t.Fatal(all, err)
	}
	for _, name := range all {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(raw), "http://www.w3.org/2000/svg", "") // a name, not an address
		if found := outside.FindString(text); found != "" {
			t.Errorf("%s speaks of %s", name, found)
		}
		if found := inline.FindString(text); found != "" {
			t.Errorf("%s: %s: the policy does not let it run, or text could become markup", name, found)
		}
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if _, err := fs.Stat(files, path.Join("page", m[1])); err != nil && m[1] != "data:," {
				t.Errorf("%s needs %s, which is not there", name, m[1])
			}
		}
	}
}
