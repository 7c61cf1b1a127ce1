package file

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each file in testdata/bad is wrong; the .golden file beside it holds what is said of it.
func TestBadFilesGetOneClearLineEach(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.yaml")
	if len(files) < 20 {
		t.Fatalf("only %d files in testdata/bad", len(files))
	}
	for _, path := range files {
		_, err := Load(path)
		if err == nil {
			t.Errorf("%s: no error", path)
			continue
		}
		got := strings.ReplaceAll(err.Error(), "testdata/bad/", "") + "\n"
		golden := strings.TrimSuffix(path, ".yaml") + ".golden"
		if *update {
			os.WriteFile(golden, []byte(got), 0o644)
		}
		if want, _ := os.ReadFile(golden); got != string(want) {
			t.Errorf("%s: said\n%s\nwant\n%s\n(go test -update writes the golden files)", path, got, want)
		}
	}
}

func TestExamplesAreGood(t *testing.T) {
	files, _ := filepath.Glob("../../../examples/*.yaml")
	more, _ := filepath.Glob("../../../examples/experiments/*.yaml")
	if len(files) < 2 || len(more) < 5 {
		t.Fatal("no examples")
	}
	files = append(files, more...)
	for _, path := range files {
		if _, err := Load(path); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	f, err := Load("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := f.Node("s1").Program("nginx")
	const impaired = "rate 10Mbit queue 256KB delay 20ms jitter 2ms unordered true loss 1% burst-loss 2% burst 4 duplicate 3% reorder 4% reorder-by 5ms"
	checks := map[string]bool{
		"name":        f.Name == "full",
		"domain":      f.Network.Domain == "example",
		"as":          f.Network.Space.AS.String() == "fd00:1:2::/48",
		"service":     f.Services[0].Ready == "http:/" && f.Services[0].Weight == 7 && f.Services[0].DSCP == 10,
		"datagrams":   f.Services[1].Datagrams == "unbound" && f.Services[1].Failover == "continue" && f.Services[1].Drain == "shed",
		"argv":        strings.Join(p.Argv, "|") == "nginx|-g|a b",
		"program":     p.Service == "web" && p.Manual,
		"env":         len(p.Env) == 1 && p.Env[0] == Pair{"A", "${node}"},
		"files":       len(p.Files) == 1 && p.Files[0].Key == "conf/x",
		"router":      f.Node("r1").Service && f.Node("r1").Block == 9,
		"rate":        f.Links[3].Rate == 1e9 && f.Links[3].MTU == 9000,
		"veth":        f.Links[3].Emulated == nil,
		"emulated":    f.Links[4].Emulated[0].String() == impaired && f.Links[4].Emulated[1].String() == strings.Replace(impaired, "20ms", "30ms", 1),
		"seeds":       [2]uint64{f.Links[4].Emulated[0].Seed, f.Links[4].Emulated[1].Seed} == emu.Seeds(7),
		"trust":       f.Network.Trust == "keys",
		"unplugged":   f.Links[2].Unplugged && !f.Links[0].Unplugged,
		"repeated":    wholeTimeline(f.Timeline[3:]) == "4s move c1 r1 r2, 4.25s move c1 r2 r1 gap 50ms, 4.5s move c1 r1 r2",
		"label":       f.Timeline[5].Label == "to and fro",
		"steps":       len(f.Timeline) == 6 && f.Timeline[0].At == 500*time.Millisecond && f.Timeline[1].Action.Verb == "kill",
		"title":       f.Title == "All keys",
		"series":      len(f.Series) == 4 && f.Series[0].Received == "r1" && f.Series[0].Every == 100*time.Millisecond && f.Series[0].Panel == "Mbit/s" && f.Series[1].Sent == "r1" && f.Series[1].Every == 50*time.Millisecond,
		"connections": f.Series[2].Connections == 80 && f.Series[3].Rate && len(f.Series[3].Argv) == 3,
		"boost":       len(f.Boost.Sites) == 2 && f.Boost.Sites[1].Hosts[1] == "s1" && f.Boost.Entries[0].Port == 80 && f.Boost.Entries[1].Clients == "west" && f.Boost.Entries[1].Accept == "at-once" && f.Boost.Entries[0].Accept == "" && f.Node("x").Kind == Agent,
		"measure":     f.Measure[0].End && f.Measure[1].At == time.Second,
		"default mtu": f.Links[0].MTU == 1500,
	}
	for what, ok := range checks {
		if !ok {
			t.Errorf("%s was not read as written", what)
		}
	}
}

func wholeTimeline(steps []*Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, fmt.Sprint(s.At, " ", s.Action))
	}
	return strings.Join(all, ", ")
}

func TestCommandLinesSplitLikeAShell(t *testing.T) {
	for in, want := range map[string]string{
		`a b  c`: "a|b|c", `sh -c 'echo "x y"'`: `sh|-c|echo "x y"`, `a "b 'c'" d\ e`: "a|b 'c'|d e", `a ""`: "a|",
		`a"b"c`: "abc", `'a`: "", `a\`: "", "": "", "  ": "", `'\'`: `\`,
		`printf "a\n" x\n`: `printf|a\n|xn`, `"\$x \"\\ \'"`: `$x "\ \'`, "a\\\nb \\\n c \"d\\\ne\"": "ab|c|de",
	} {
		got, err := SplitArgv(in)
		if strings.Join(got, "|") != want || (err == nil) != (want != "") {
			t.Errorf("SplitArgv(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestActionsAreWrittenAsTheyAreRead(t *testing.T) {
	for _, in := range []string{
		"start s1/nginx", "kill s1/nginx", "kill s1/nginx TERM", "kill s1", "kill s1 40", "stop s1/nginx", "cont s1/nginx", "restart ctl",
		"cut s1", "cut r1 p", "unplug s1", "heal s1", "weight web s1 3", "drain web s1", "undrain web s1", "exec c1: curl -s http://web.svc/", `exec c1: sh -c 'echo "a\n" $x' ''`,
		"move c1 r1 r2", "move c1 r1 r2 gap 3.2s", "move c1 r1 r2 gap 50ms first", "move c1 r1 r2 first", "remove c1 r1",
		"drain web s1 wait", "drain web s1 shed", "link a b delay 50ms loss 2%", "link a->b rate 1Mbit",
	} {
		a, err := ParseAction(in)
		if err != nil || a.String() != in {
			t.Errorf("%q became %q, %v", in, a, err)
		}
	}
	for _, in := range []string{
		"", "fly s1", "start", "start a b", "kill s1/x NOSUCH", "kill /", "kill s1/", "start /x", "kill s1 TERM x", "weight web s1", "weight web s1 -1",
		"weight web s1 70000", "drain web", "exec c1", "exec c1:", "exec : x", "cut a b c", "remove a",
		"move c1 r1", "move c1 r1 r2 gap", "move c1 r1 r2 gap -1s", "move c1 r1 r2 first gap 1s", "move c1 r1 r2 slow", "drain web s1 now", "undrain web s1 wait", "link a", "link a b", "link a b delay", "link a->b", "link ->b delay 1ms", "exec c1: 'x",
	} {
		if a, err := ParseAction(in); err == nil {
			t.Errorf("%q became %q, want an error", in, a)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/*.yaml", "../../../examples/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, path := range files {
			text, _ := os.ReadFile(path)
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := Parse("f.yaml", text)
		if err == nil {
			return
		}
		for _, e := range err.(Errors) {
			if e.Line < 1 || e.Text == "" {
				t.Errorf("error without a place or text: %+v", e)
			}
		}
	})
}

func FuzzAction(f *testing.F) {
	f.Add("kill s1/nginx TERM")
	f.Add("exec c1: sh -c 'x y'")
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := ParseAction(text); err == nil {
			if again, err := ParseAction(a.String()); err != nil || again.String() != a.String() {
				t.Errorf("%q became %q and then %q, %v", text, a, again, err)
			}
		}
	})
}
