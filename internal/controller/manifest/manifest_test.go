package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/permit"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

var update = flag.Bool("update", false, "write the golden files and the schema anew")

const (
	examples      = "../../../examples/services/"
	boostExamples = "../../../examples/boost/network.yaml"
)

// golden compares with a file, or writes it.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, _ := os.ReadFile(file); !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s\n(go test -update writes it)", file, got, want)
	}
}

// Each file in testdata/bad is wrong; the .golden file beside it holds all that is said of it.
func TestEveryMistakeIsToldWithItsLineAndColumn(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.yaml")
	if len(files) < 5 {
		t.Fatalf("only %d files in testdata/bad", len(files))
	}
	for _, path := range files {
		_, err := Load([]string{path}, nil)
		if err == nil {
			t.Errorf("%s: no error", path)
			continue
		}
		golden(t, strings.TrimSuffix(path, ".yaml")+".golden", []byte(strings.ReplaceAll(err.Error(), "testdata/bad/", "")+"\n"))
	}
}

func TestTheExampleIsGoodAndTheSchemaIsOfTheseFields(t *testing.T) {
	set, err := Load([]string{examples}, nil)
	if err != nil || len(set.Services) != 4 {
		t.Errorf("%v, %v", set, err)
	}
	if set, err := Load([]string{boostExamples}, nil); err != nil || len(set.Sites) != 2 || len(set.Entries) != 2 {
		t.Errorf("%v, %v", set, err)
	}
	golden(t, examples+"services.schema.json", Schema())
	if !json.Valid(Schema()) {
		t.Error("the schema is no JSON")
	}
}

func TestFilesDirectoriesAndStdinAreRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.yaml": "services: {a: }", "b.yml": "services:\n", "c.txt": "no", "d.yaml": "# nothing\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := Load([]string{dir, "-"}, strings.NewReader("services: {b: {ready: tcp}}"))
	if err != nil || len(set.Services) != 2 || set.Services[0].Name != "a" || *set.Services[1].Ready != "tcp" {
		t.Errorf("%v, %v", set, err)
	}
	if _, err := Load([]string{dir, "-"}, strings.NewReader("services: {A: }")); err == nil || !strings.Contains(err.Error(), "stdin:1:12: service a stands also in "+dir) {
		t.Errorf("the same service in two files: %v", err)
	}
	for _, path := range []string{filepath.Join(dir, "none.yaml"), t.TempDir()} {
		if _, err := Load([]string{path}, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAKeyMayBeAFileBesideTheManifest(t *testing.T) {
	dir := t.TempDir()
	key := make([]byte, 32)
	os.WriteFile(filepath.Join(dir, "web.pub"), permit.FormatPublic(key), 0o600)
	os.WriteFile(filepath.Join(dir, "s.yaml"), []byte("services: {web: {key: web.pub}}"), 0o600)
	set, err := Load([]string{dir}, nil)
	if err != nil || *set.Services[0].Key != names.FormatKey(key) {
		t.Errorf("%v, %v", set, err)
	}
}

func TestWhatTheControllerSaysIsSaidOfItsLine(t *testing.T) {
	set, err := Parse("s.yaml", []byte("services:\n  web:\n    weights:\n      s1: 3\n    ready: tcp\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := set.Blame([]*apiv1.SpecProblem{
		{Service: "web", Text: "one"}, {Service: "web", Field: "ready", Text: "two"}, {Service: "web", Field: "weights.s1", Text: "three"},
		{Service: "web", Field: "unknown", Text: "four"}, {Service: "gone", Text: "five"}})
	for _, want := range []string{"s.yaml:2:3: one", "s.yaml:5:12: two", "s.yaml:4:7: three", "s.yaml:2:3: four", "services:0: five"} {
		if !strings.Contains(got.Error(), want) {
			t.Errorf("%q is not in\n%v", want, got)
		}
	}
}

func TestWhatTheControllerSaysOfBoostIsSaidOfItsLine(t *testing.T) {
	set, err := Parse("b.yaml", []byte("services:\n  east:\nboost:\n  sites:\n    east:\n      prefixes: [192.0.2.1]\n  entries:\n    east: {client: 192.0.2.1, server: 192.0.2.2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := set.Blame([]*apiv1.SpecProblem{
		{Service: "east", Text: "one"}, {Kind: siteKind, Service: "east", Field: "prefixes", Text: "two"}, {Kind: siteKind, Service: "east", Field: "agents", Text: "three"},
		{Kind: entryKind, Service: "east", Field: "server", Text: "four"}, {Kind: entryKind, Service: "gone", Text: "five"}})
	for _, want := range []string{"b.yaml:2:3: one", "b.yaml:6:17: two", "b.yaml:5:5: three", "b.yaml:8:39: four", "boost:0: five"} {
		if !strings.Contains(got.Error(), want) {
			t.Errorf("%q is not in\n%v", want, got)
		}
	}
}

func TestWhatIsWrittenOfBoostIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &apiv1.ExportResponse{}
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "1e3", "null", "true"}), 0, 3, rapid.ID)
		list := func(of ...string) *apiv1.StringList {
			if l := rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, 2, rapid.ID).Draw(t, "list"); len(l) > 0 {
				return &apiv1.StringList{Items: l}
			}
			return nil
		}
		for _, name := range slices.Sorted(slices.Values(names.Draw(t, "sites"))) {
			s := &apiv1.BoostSiteSpec{Name: name, Prefixes: []string{"192.0.2.0/24", "::/0"}, Agents: list("e1", "yes"), Switches: list("0x1", "s1")}
			s.OnPath = s.Switches == nil && rapid.Bool().Draw(t, "on-path")
			want.BoostSites = append(want.BoostSites, s)
		}
		for _, name := range slices.Sorted(slices.Values(names.Draw(t, "entries"))) {
			e := &apiv1.BoostEntrySpec{Name: name, Client: "192.0.2.1", Server: "2001:db8::/32"}
			if rapid.Bool().Draw(t, "port?") {
				e.Port = proto.Uint32(rapid.Uint32Range(0, 65535).Draw(t, "port"))
			}
			if rapid.Bool().Draw(t, "times?") {
				from := rapid.Int64Range(1000, 1<<42).Draw(t, "from")
				e.FromUnixMs, e.UntilUnixMs = proto.Int64(from), proto.Int64(from+1)
			}
			if rapid.Bool().Draw(t, "accept?") {
				e.Accept = proto.String(rapid.SampledFrom(lane.Accepts).Draw(t, "accept"))
			}
			want.BoostEntries = append(want.BoostEntries, e)
		}
		text, err := Format(want)
		if err != nil {
			t.Fatal(err)
		}
		set, err := Parse("t.yaml", text)
		if err != nil {
			t.Fatalf("written as\n%s\n%v", text, err)
		}
		if got := (&apiv1.ExportResponse{BoostSites: set.Sites, BoostEntries: set.Entries}); !proto.Equal(got, want) {
			t.Fatalf("%v\nwritten as\n%s\nis read as\n%v", want, text, got)
		}
	})
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &apiv1.ServiceSpec{Name: rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z])?`).Draw(t, "name")}
		word := func(of ...string) *string {
			if w := rapid.SampledFrom(append(of, "-")).Draw(t, "word"); w != "-" {
				return &w
			}
			return nil
		}
		list := func(of ...string) *apiv1.StringList {
			if l := rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, 3, rapid.ID).Draw(t, "list"); len(l) > 0 {
				return &apiv1.StringList{Items: l}
			}
			return nil
		}
		s.Ready, s.Failover, s.Drain = word("", "tcp", "http:/a b#c", "exec:test -e '/x' # \"y\" : [z]"), word("reset", "continue", ""), word("wait", "shed")
		s.Datagrams, s.Sid, s.Key = word("bound", "unset"), word("00000001-0000000000c0ffee"), word(names.FormatKey(make([]byte, 32)))
		s.Servers, s.Allow = list("s1", "123", "true", "null"), list("c1", "service:no", "fd5d::/64", "::/0", "0x1f")
		s.Weights = rapid.MapOfN(rapid.SampledFrom([]string{"s1", "1e3", "yes"}), rapid.Uint32Range(0, 65535), 0, 3).Draw(t, "weights")
		if rapid.Bool().Draw(t, "numbers") {
			s.Weight, s.Dscp, s.PatienceMs = proto.Uint32(rapid.Uint32Range(1, 65535).Draw(t, "weight")), proto.Uint32(0), proto.Uint32(rapid.Uint32Range(0, 60000).Draw(t, "ms"))
		}
		text, err := Format(&apiv1.ExportResponse{Services: []*apiv1.ServiceSpec{s}})
		if err != nil {
			t.Fatal(err)
		}
		set, err := Parse("t.yaml", text)
		if err != nil || len(set.Services) != 1 || !proto.Equal(set.Services[0], s) {
			t.Fatalf("%v\nwritten as\n%s\nis read as\n%v, %v", s, text, set.Services, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", examples + "*.yaml", boostExamples} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			text, _ := os.ReadFile(file)
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := Parse("f.yaml", text)
		if err != nil {
			return
		}
		again, err := Format(&apiv1.ExportResponse{Services: set.Services, BoostSites: set.Sites, BoostEntries: set.Entries})
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse("f.yaml", again)
		if err != nil || len(back.Services) != len(set.Services) || len(back.Sites) != len(set.Sites) || len(back.Entries) != len(set.Entries) {
			t.Errorf("%q\nis written as %q\nwhich is read as %v, %v", text, again, back, err)
		}
	})
}
