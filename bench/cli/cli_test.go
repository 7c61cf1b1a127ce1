package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli/command/commandtest"
	"scaffold.dev/scaffold/internal/tests/documented"
)

func TestEveryCommandHasAnExample(t *testing.T) { commandtest.HaveExamples(t, New()) }

func TestFlagsThatExcludeEachOtherAreRefused(t *testing.T) { commandtest.RefuseBoth(t, New) }

func TestAMistakeOnTheCommandLineIsToldAndNothingIsMeasured(t *testing.T) {
	t.Chdir(t.TempDir())
	commandtest.Refused(t, `
chaos --only ''                    => --only is empty
chaos --check --seed 3             => --check and --seed
chaos --check --duration 2m        => --check and --duration
chaos --check --only kill          => --check and --only
chaos --check --moves=true         => --check and --moves
chaos --dry-run --name x           => --dry-run and --name
chaos --dry-run --logs d           => --dry-run and --logs
chaos --dry-run -o json            => --dry-run and --output
path --pairs 0                     => --pairs "0": want a whole number from 1 up
split --flows -1                   => --flows "-1": want a whole number from 1 up
move --flows -3                    => --flows "-3": want a whole number from 0 up
churn -n none                      => --times "none": want a whole number from 1 up
hogs --duration 1ms                => --duration "1ms": want a duration of at least 1s
boost --duration 1s                => a window has not grown in 1s
boost --only nonsense              => --only "nonsense": want some of loss, share, worker
boost --quick --runs 3             => --quick and --runs
sos                                => name an experiment: some of sos_cores
sos sos_loss sos_nothing           => there is no experiment "sos_nothing": want some of sos_cores
sos sos_loss --draw                => --draw measures nothing: leave sos_loss out
table --services 0                 => --services "0": want a whole number from 1 up
path x                             => takes no arguments, got "x"
frobnicate                         => there is no such command: choose one of boost, chaos, churn
                                   `, New)
}

// As in the test of scaffold's own switches.
func TestEverySwitchSaysWhatGoesUnheardBesideIt(t *testing.T) {
	commandtest.Switches(t, New(), `
bench --check
bench --far
bench boost --quick => runs
bench chaos --check => seed duration only moves
bench chaos --dry-run => name logs output
bench chaos --moves => check
bench emu --quick
bench sos --draw => duration name quick runs
bench sos --quick => draw duration runs
`, nil)
}

// benchmark says what is wrong with a command line behind scaffold; those of other commands are right for scaffold's own
// tests to say.
func benchmark(words []string, whole bool) string {
	if words[0] != "bench" || len(words) == 1 {
		return ""
	}
	return documented.Try(New(), words[1:], whole)
}

func TestDocumentedBenchmarksExist(t *testing.T) {
	top, seen := "../..", 0
	for _, glob := range []string{"*.md", "*/*.md", "*/*/*.md", "examples/*.yaml"} {
		names, err := filepath.Glob(filepath.Join(top, glob))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			documented.Each(string(text), func(line string, words []string, whole bool) {
				if words[0] == "bench" {
					seen++
				}
				if why := benchmark(words, whole); why != "" {
					t.Errorf("%s: %q: %s", strings.TrimPrefix(name, top+"/"), line, why)
				}
			})
		}
	}
	if seen < 25 {
		t.Errorf("%d commands were found in documents: does this test still know how they are written?", seen)
	}
}

func TestExamplesOfBenchmarksAreCommands(t *testing.T) {
	documented.Examples(New(), func(words []string) string { return benchmark(words, true) }, func(path, line, why string) {
		t.Errorf("%s --help: %q: %s", path, line, why)
	})
}
