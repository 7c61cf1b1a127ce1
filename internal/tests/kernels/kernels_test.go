package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/operate/doctor"
)

func TestTheNewestPackageOfASeriesIsTaken(t *testing.T) {
	for want, names := range map[string][]string{
		"linux-image-6.1.0-50-amd64":       {"linux-image-6.1.0-47-amd64", "linux-image-6.1.0-50-amd64", "linux-image-6.1.0-9-amd64", "linux-image-6.1.0-51-cloud-amd64"},
		"linux-image-6.12.107+deb13-amd64": {"linux-image-6.12.94+deb13-amd64", "linux-image-6.12.107+deb13-amd64", "linux-image-6.12.200-rt-amd64"},
		"linux-image-7.0.10+deb13-amd64":   {"linux-image-7.0.10+deb13-amd64", "linux-image-7.0.10+deb13-amd64-unsigned", "linux-image-7.0.9+deb13-amd64"},
		"":                                 {"linux-image-6.1.0-50-rt-amd64", "linux-image-6.1-arm64"},
	} {
		if got := newest(names); got != want {
			t.Errorf("of %v: %q, want %q", names, got, want)
		}
	}
}

func TestBadSeriesAreRefused(t *testing.T) {
	for _, name := range []string{"", "6", "6.1.0", "../6.1", "6.1 ", "v6.1", "-rf"} {
		if _, err := parse([]string{"--", name}); err == nil || !strings.Contains(err.Error(), "hint:") {
			t.Errorf("%q: %v", name, err)
		}
	}
	j, err := parse([]string{"-only", "bpf", "6.12"})
	if err != nil || !slices.Equal(j.kernels, []string{"6.12"}) || j.only != "bpf" {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestWhatTestsSaidIsCounted(t *testing.T) {
	for text, want := range map[string]string{
		"--- PASS: TestA (0.1s)\n    --- FAIL: TestA/b (0s)\n--- SKIP: TestB (0s)\nPASS\n" + exitLine + "0\n": "1 passed, 1 left out",
		"--- PASS: TestA (0.1s)\n--- FAIL: TestB (0s)\nFAIL\n" + exitLine + "1\n":                             "**1 failed**, 1 passed",
		"--- PASS: TestA (0.1s)\npanic: nil map\n" + exitLine + "2\n":                                         "**panic: nil map**, 1 passed",
		"--- PASS: TestA (0.1s)\n" + exitLine + "2\n":                                                         "**it did not end as it should**, 1 passed",
		"--- PASS: TestA (0.1s)\n=== RUN   TestB\npanic: test timed out after 5m\n" + exitLine + "2\n":        "1 passed; then cut off for time",
		"--- PASS: TestA (0.1s)\n--- SKIP: TestB (0s)\n=== RUN   TestC\n":                                     "1 passed, 1 left out; then cut off for time",
		"": "0 passed; then cut off for time",
	} {
		if got := count("x", text); got.String() != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if count("x", "PASS\n"+exitLine+"0\n").ok() {
		t.Error("a package without a test that passed counts as good")
	}
	if got := count("x", "=== RUN   TestA\n--- PASS: TestA (0.1s)\n=== RUN   TestB\n=== RUN   TestB/part\n").cut; got != "TestB/part" {
		t.Errorf("cut off in %q, want TestB/part", got)
	}
}

func TestASuiteMayTakeTheTimeThatIsLeft(t *testing.T) {
	p := plan{Limit: 20 * time.Minute}
	for up, want := range map[time.Duration]time.Duration{0: 19 * time.Minute, 10 * time.Minute: 9 * time.Minute, 19 * time.Minute: 0, 30 * time.Minute: -11 * time.Minute} {
		if got := p.left(up); got != want {
			t.Errorf("%v after its start: %v, want %v", up, got, want)
		}
	}
}

// What a machine wrote before its time was over.
func TestWhatWasRunInTimeIsKept(t *testing.T) {
	dir, k := t.TempDir(), kernel{release: "6.1"}
	suites := []suite{{Name: doctorSuite}, {Name: "internal/x"}, {Name: "internal/y"}, {Name: "internal/z"}}
	for i, text := range []string{
		`{"findings": [{"area": "kernel", "name": "ring", "state": "good"}]}` + "\n" + exitLine + "0\n",
		"--- PASS: TestA (1s)\nPASS\n" + exitLine + "0\n",
		"--- PASS: TestB (1s)\n=== RUN   TestC\n",
	} {
		if err := os.WriteFile(suites[i].file(dir), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := collect(k, suites, dir)
	if err != nil || len(r.suites) != 2 || r.suites[0].String() != "1 passed" || r.suites[1].String() != "1 passed; then cut off for time" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := verdict([]result{r}, false); err != nil {
		t.Errorf("on a slow machine: %v", err)
	}
	if err := verdict([]result{r}, true); err == nil || !strings.Contains(err.Error(), "internal/y: 1 passed; then cut off") {
		t.Errorf("on a quick machine: %v", err)
	}
}

func TestAKernelThatLacksSomethingNeededFailsNobody(t *testing.T) {
	old := result{release: "5.10", features: []doctor.Finding{{Name: "ring", State: doctor.Missing}}}
	good := result{release: "6.1", features: []doctor.Finding{{Name: "ring", State: doctor.Good}, {Name: "tcx", State: doctor.Note}},
		suites: []tally{{name: "internal/x", passed: 3}}}
	if err := verdict([]result{old, good}, true); err != nil {
		t.Error(err)
	}
	want := "| Debian's kernel | 5.10 | 6.1 |\n| --- | --- | --- |\n| ring | **no** | yes |\n| tcx |  | no |\n| tests of `internal/x` | not run | 3 passed |\n"
	if got := markdown([]result{old, good}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	good.suites[0].failed = []string{"TestA"}
	if err := verdict([]result{good}, false); err == nil || !strings.Contains(err.Error(), "6.1: internal/x: 1 failed, 3 passed TestA") {
		t.Errorf("%v", err)
	}
}

func TestTheTableIsWrittenInItsPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	for _, table := range []string{"| a |\n", "| b |\n"} {
		if err := os.WriteFile(file, []byte("before\n"+tableBegin+"old\n"+tableEnd+"after\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := record(file, table); err != nil {
			t.Fatal(err)
		}
		if text, _ := os.ReadFile(file); string(text) != "before\n"+tableBegin+table+tableEnd+"after\n" {
			t.Errorf("%q", text)
		}
	}
	os.WriteFile(file, []byte("no table"), 0o644)
	if err := record(file, ""); err == nil {
		t.Error("a document without a table is written")
	}
}

// The kernel's documentation (driver-api/early-userspace/buffer-format) has the layout.
func TestTheArchiveIsOneThatAKernelUnpacks(t *testing.T) {
	var a archive
	a.add("init", 0o100755, []byte("hello"))
	a.node("dev/console", 5, 1)
	a.add("TRAILER!!!", 0, nil)
	b := a.Bytes()
	if len(b)%4 != 0 || !bytes.HasPrefix(b, []byte("07070100000001000081ED")) {
		t.Errorf("%q", b[:min(len(b), 60)])
	}
	if got := string(b[110 : 110+5]); got != "init\x00" {
		t.Errorf("the name is %q", got)
	}
	if got := string(b[116 : 116+5]); got != "hello" {
		t.Errorf("the data are %q", got)
	}
	second := b[124:]
	if !bytes.HasPrefix(second, []byte("070701000000020000218000000000000000000000000100000000000000000000000000000000000000050000000100")) {
		t.Errorf("%q", second)
	}
}
