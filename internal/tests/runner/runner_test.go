package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is a Go module whose tests end in each way that the runner tells apart. Which of them fails is in the environment.
var module = map[string]string{
	"go.mod": "module example.org/odd\n\ngo 1.26\n",
	"odd_test.go": `package odd

import (
	"os"
	"testing"
)

func fails(t *testing.T, where string) {
	t.Log("looks at", where)
	if os.Getenv("ODD") == t.Name() {
		t.Error("what is wrong here")
	}
}

func TestFine(t *testing.T) { t.Run("part", func(t *testing.T) {}) }

func TestOnce(t *testing.T) {
	if _, err := os.Stat(os.Getenv("ODD_MARK")); err != nil {
		os.WriteFile(os.Getenv("ODD_MARK"), nil, 0o600)
		fails(t, "the first time")
	}
}

func TestAlways(t *testing.T) { fails(t, "always") }

func TestDoor(t *testing.T) {
	t.Attr("safety", "somebody let in")
	fails(t, "the first time")
}

func TestCrash(t *testing.T) {
	if os.Getenv("ODD") == t.Name() {
		go func() { panic("in between") }()
		select {}
	}
}

func TestPanic(t *testing.T) {
	if os.Getenv("ODD") == t.Name() {
		panic("by the test itself")
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv("ODD_LEFT") != "" {
		println("a lab is left")
		code = 1
	}
	os.Exit(code)
}
`,
	"skip/skip_test.go": "package skip\n\nimport \"testing\"\n\nfunc TestLeftOut(t *testing.T) { t.Skip(\"for a reason\") }\nfunc TestSomeHelper(t *testing.T) { t.Skip() }\n",
}

// odd runs the module's tests with one of them failing, and is what the runner says of that.
func odd(t *testing.T, which string) (r *runner, report string, err error) {
	t.Helper()
	dir := t.TempDir()
	for path, text := range module {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err = newRunner("odd")
	if err != nil {
		t.Fatal(err)
	}
	r.stage(t.Context(), []stage{{name: "odd", dir: dir, env: []string{"ODD=" + which, "ODD_MARK=" + filepath.Join(dir, "mark"), "GOWORK=off"}, packages: []string{"./..."}}})
	var b strings.Builder
	err = r.report(&b)
	return r, b.String(), err
}

func TestWhatFailsIsToldFromWhatFailsByChance(t *testing.T) {
	t.Chdir(t.TempDir()) // where what tests say is kept
	if err := os.WriteFile("go.mod", pinned(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for which, want := range map[string]struct {
		again int
		says  []string
		fails bool
	}{
		"none":       {0, []string{"odd: 0 unsteady, 0 broken", "skipped: example.org/odd/skip.TestLeftOut", "7 passed, 0 failed, 1 skipped"}, false},
		"TestOnce":   {1, []string{"unsteady: example.org/odd.TestOnce, odd_test.go:11: what is wrong here", "1 unsteady, 0 broken"}, false},
		"TestAlways": {1, []string{"FAILED: example.org/odd.TestAlways: failed again, alone, 2 times", "looks at always"}, true},
		"TestDoor":   {0, []string{"FAILED: example.org/odd.TestDoor: of safety (somebody let in): never tried again"}, true},
		"TestPanic":  {0, []string{"FAILED: example.org/odd: the package failed beside its tests", "panic: by the test itself"}, true},
		"TestCrash":  {0, []string{"FAILED: example.org/odd: the package failed beside its tests", "panic: in between"}, true},
	} {
		r, report, err := odd(t, which)
		if (err != nil) != want.fails || r.again != want.again {
			t.Errorf("%s: the runner ends with %v after %d tests again", which, err, r.again)
		}
		for _, text := range want.says {
			if !strings.Contains(report, text) {
				t.Errorf("%s: the report lacks %q:\n%s", which, text, report)
			}
		}
	}
}

// What TestMain finds is found also beside a test that fails by chance.
func TestWhatIsLeftBehindIsNotHiddenByAFailure(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("go.mod", pinned(t), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ODD_LEFT", "1")
	if r, report, err := odd(t, "TestOnce"); err == nil || r.again != 0 || !strings.Contains(report, "a lab is left") {
		t.Errorf("the runner ends with %v after %d tests again:\n%s", err, r.again, report)
	}
}

// pinned is a go.mod by which a directory elsewhere finds the tools of this tree.
func pinned(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(top, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(top, "go.sum"))
	if err == nil {
		err = os.WriteFile("go.sum", sums, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// top is the tree, as it was before a test changed its directory.
var top = func() string {
	dir, err := filepath.Abs("../../..")
	if err != nil {
		panic(err)
	}
	return dir
}()

// Of many failures none is run again: chance does not explain them.
func TestManyFailuresAreNoChance(t *testing.T) {
	o, r := newOutcome(), &runner{}
	for _, test := range []string{"TestA", "TestB", "TestC", "TestD", "TestE", "TestF"} {
		o.take(event{Action: "run", Package: "p", Test: test})
		o.take(event{Action: "fail", Package: "p", Test: test})
	}
	o.take(event{Action: "output", Package: "p", Output: "FAIL\n"})
	o.take(event{Action: "fail", Package: "p"})
	r.judge(t.Context(), stage{}, o)
	if len(r.wrong) != 6 || r.again != 0 {
		t.Errorf("%d of 6 are broken, %d were run again", len(r.wrong), r.again)
	}
}

func TestADataRaceIsNoChance(t *testing.T) {
	o, r := newOutcome(), &runner{}
	o.take(event{Action: "output", Package: "p", Test: "TestB", Output: "WARNING: DATA RACE\n"}) // it may be told of another test
	o.take(event{Action: "fail", Package: "p", Test: "TestA/part"})
	o.take(event{Action: "fail", Package: "p", Test: "TestA"})
	o.take(event{Action: "output", Package: "p", Output: "FAIL\n"})
	o.take(event{Action: "fail", Package: "p"})
	r.judge(t.Context(), stage{}, o)
	if len(r.wrong) != 1 || !strings.HasPrefix(r.wrong[0].why, "a data race") {
		t.Errorf("broken: %v", r.wrong)
	}
}

// What breaks a build, and what is no event at all, is said.
func TestWhatIsNotBuiltIsSaid(t *testing.T) {
	o := newOutcome()
	err := o.read(strings.NewReader("go: no such module\n" +
		`{"ImportPath":"p [p.test]","Action":"build-output","Output":"p_test.go:3: undefined: x\n"}` + "\n" +
		`{"ImportPath":"p [p.test]","Action":"build-fail"}` + "\n" + `{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := o.crashes(); !slices.Equal(got, []string{"p"}) || !slices.Contains(o.units["p"].said, "p_test.go:3: undefined: x") {
		t.Errorf("crashes %v, said %q", got, o.units["p"].said)
	}
	if !slices.Contains(o.units[""].said, "go: no such module") {
		t.Error("what the toolchain said is lost")
	}
}

func TestTheEndOfALongOutputIsRepeated(t *testing.T) {
	said := []string{"=== RUN   TestA", "    a_test.go:5: looks", "    a_test.go:7: not so"}
	said = append(said, "    lab_test.go:9: hostd.log ends:")
	for range 100 {
		said = append(said, "noise")
	}
	if got := why(said); got != "a_test.go:7: not so" {
		t.Errorf("why: %q", got)
	}
	if got := tail(said, end); len(got) != end || got[0] != "noise" {
		t.Errorf("the end is %d lines, the first %q", len(got), got[0])
	}
}

func TestATestIsFoundByItsName(t *testing.T) {
	if got, err := find(top, "TestATestIsFoundByItsName"); err != nil || !strings.HasSuffix(got, "internal/tests/runner") {
		t.Errorf("found %q, %v", got, err)
	}
	if _, err := find(".", "TestNobodyHasThis"); err == nil {
		t.Error("a test that there is not was found")
	}
}

// What is left out for its name is there under that name.
func TestWhatIsLeftToALongRunExists(t *testing.T) {
	for _, test := range slices.Concat(onlyLong, alone, byOneGoroutine) {
		if _, err := find(top, test); err != nil {
			t.Errorf("%v: take it off the list in long.go", err)
		}
	}
}
