package rules

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli"
)

var (
	fence   = regexp.MustCompile("(?ms)^ *```(?:sh|console|bash|shell)\n(.*?)^ *```")
	target  = regexp.MustCompile(`(?m)^([a-z-]+):`)
	inText  = regexp.MustCompile("`(?:sudo )?(?:bin/)?scaffold ([^`]+)`")
	context = regexp.MustCompile(`^[a-z ]+ 1$`) // what is signed begins with such words: docs/protocol.md
)

// shellLines returns the lines of the shell blocks of a document; one that ends with a backslash goes on in the next.
func shellLines(text string) (lines []string) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(strings.ReplaceAll(m[1], "\\\n", " ")) {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		}
	}
	return lines
}

// words takes a line of shell apart into commands and their words, as far as documents need it: quotes count,
// comments and redirections go, what is substituted is a command of its own.
func words(line string) (commands [][]string) {
	var now []string
	word, quoted, quote := "", false, rune(0)
	end := func() {
		if word != "" || quoted {
			now = append(now, word)
		}
		word, quoted = "", false
	}
	next := func() {
		end()
		if cut := slices.IndexFunc(now, func(w string) bool { return strings.Trim(w, "0123456789") == ">" || w == ">>" || w == "<" }); cut >= 0 {
			now = now[:cut]
		}
		commands = append(commands, now)
		now = nil
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word += string(c)
		case c == '\'' || c == '"':
			quote, quoted = c, true
		case c == '#' && word == "" && !quoted:
			next()
			return commands
		case c == '(' && strings.HasSuffix(word, "$"):
			word = strings.TrimSuffix(word, "$") + "X"
			next()
		case strings.ContainsRune("|&;()", c):
			next()
		case c == ' ' || c == '\t':
			end()
		default:
			word += string(c)
		}
	}
	next()
	return commands
}

// program finds the words behind a program's name, also where others go before it, as sudo does.
func program(words []string, names ...string) []string {
	at := slices.IndexFunc(words, func(w string) bool { return slices.Contains(names, w) })
	if at < 0 {
		return nil
	}
	return words[at+1:]
}

func TestCommandsAreTakenApartAsAShellDoes(t *testing.T) {
	for line, want := range map[string]string{
		"sudo scaffold lab up two.yaml   # brings it up": "lab up two.yaml",
		"scaffold run --service web -- nginx -g 'a; b;'": "run --service web -- nginx -g a; b;",
		"scaffold export > services.yaml":                "export",
		"scaffold export | scaffold apply -f -":          "export,apply -f -",
		"cd x && ip netns exec web scaffold status":      "status",
		"adduser alice scaffold":                         "",
		"T=$(scaffold token create --role host)":         "token create --role host",
		"scaffold hostd 2> log":                          "hostd",
	} {
		var got []string
		for _, w := range words(line) {
			if args := program(w, "scaffold"); len(args) > 0 {
				got = append(got, strings.Join(args, " "))
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestDocumentedCommandsExist(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	seen := 0
	files(t, []string{".md"}, func(name, text string) {
		for _, line := range shellLines(text) {
			for _, w := range words(line) {
				if args := program(w, "make"); len(args) > 0 && !strings.ContainsAny(args[0], "=-") && !targets[args[0]] {
					t.Errorf("%s: %q: the Makefile has no target %s", name, line, args[0])
				}
				if args := program(w, "scaffold", "bin/scaffold"); len(args) > 0 {
					seen++
					complain(t, name, line, tryCommand(args, true))
				}
			}
		}
		for _, m := range inText.FindAllStringSubmatch(text, -1) {
			if !context.MatchString(m[1]) {
				complain(t, name, m[0], tryCommand(words(m[1])[0], false))
			}
		}
	})
	if seen < 100 {
		t.Errorf("%d commands were found in documents: does this test still know how they are written?", seen)
	}
}

// What alerts tell people to do.
func TestCommandsOfAlertsExist(t *testing.T) {
	for _, m := range regexp.MustCompile(`scaffold ([a-z]+(?: [a-z]+)?)`).FindAllStringSubmatch(read(t, "monitoring/alerts.yaml"), -1) {
		complain(t, "monitoring/alerts.yaml", m[0], tryCommand(strings.Fields(m[1]), false))
	}
}

// A command's --help has examples of it, which people copy.
func TestExamplesOfCommandsAreCommands(t *testing.T) {
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		for line := range strings.Lines(strings.ReplaceAll(cmd.Example, "\\\n", " ")) {
			for _, w := range words(strings.TrimSpace(line)) {
				if args := program(w, "scaffold"); len(args) > 0 {
					complain(t, cmd.CommandPath()+" --help", strings.TrimSpace(line), tryCommand(args, true))
				}
			}
		}
		for _, sub := range cmd.Commands() {
			each(sub)
		}
	}
	each(cli.New())
}

func complain(t *testing.T, where, what, complaint string) {
	t.Helper()
	if complaint != "" {
		t.Errorf("%s: %q: %s", where, what, complaint)
	}
}

// tryCommand finds a command and parses its flags, and where all of it is written counts its arguments; it runs nothing.
func tryCommand(words []string, all bool) string {
	if slices.Contains([]string{"help", "completion", "--version", "--help"}, words[0]) {
		return ""
	}
	cmd, rest, err := cli.New().Find(words)
	if err != nil {
		return err.Error()
	}
	if cmd.HasSubCommands() && cmd.ValidateArgs(nil) != nil { // one that only holds others
		if all || len(rest) > 0 && regexp.MustCompile(`^[a-z]+$`).MatchString(rest[0]) {
			return "there is no such subcommand"
		}
		return ""
	}
	cmd.InitDefaultHelpFlag()
	err = cmd.ParseFlags(rest)
	if help, _ := cmd.Flags().GetBool("help"); help || errors.Is(err, pflag.ErrHelp) {
		return ""
	}
	if err == nil && all {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err == nil && all && !cmd.Flags().Changed("config") {
		err = cmd.ValidateRequiredFlags()
	}
	if err != nil && (all || !strings.HasPrefix(err.Error(), "flag needs an argument") && !strings.HasPrefix(err.Error(), "invalid argument")) {
		return err.Error()
	}
	return ""
}
