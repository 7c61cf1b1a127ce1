package dash

import (
	"io/fs"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

func get(t *testing.T, name string) (*httptest.ResponseRecorder, string) {
	t.Helper()
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest("GET", name, nil))
	return w, w.Body.String()
}

func TestThePageMayLoadAndAskItsOwnServerOnly(t *testing.T) {
	for name, kind := range map[string]string{"/": "text/html", "/main.js": "text/javascript", "/style.css": "text/css"} {
		answer, text := get(t, name)
		if answer.Code != 200 || text == "" || !strings.HasPrefix(answer.Header().Get("Content-Type"), kind) {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Header().Get("Content-Type"))
		}
		if p := answer.Header().Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none';") || strings.Contains(p, "unsafe") {
			t.Errorf("%s: %s", name, p)
		}
	}
	if answer, _ := get(t, "/../dash.go"); answer.Code == 200 {
		t.Error("it serves more than the page")
	}
}

var (
	outside = regexp.MustCompile(`(https?:)?//[a-z0-9.-]+\.[a-z]+`)
	named   = regexp.MustCompile(`(?:from |src=|href=)"([^"]+)"`)
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

var asked = regexp.MustCompile(`ask\("(\w+)"(?:, \{([^}]*)\})?\)`)

// What a browser would find when it gets there.
func TestThePageAsksWhatTheSchemaHas(t *testing.T) {
	all, err := fs.Glob(files, "page/*.js")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range all {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range asked.FindAllStringSubmatch(string(text), -1) {
			seen++
			call := labv1.File_lab_proto.Services().Get(0).Methods().ByName(protoreflect.Name(m[1]))
			if call == nil || call.IsStreamingServer() || call.IsStreamingClient() {
				t.Errorf("%s: %s: the schema has no such call with one answer", name, m[0])
				continue
			}
			for field := range strings.SplitSeq(m[2], ",") {
				field, _, _ = strings.Cut(strings.TrimSpace(field), ":")
				if field != "" && call.Input().Fields().ByName(protoreflect.Name(field)) == nil {
					t.Errorf("%s: %s: %s has no field %s", name, m[0], call.Input().Name(), field)
				}
			}
		}
	}
	if seen < 9 {
		t.Errorf("%d calls were found: does this test still know how they are written?", seen)
	}
}
