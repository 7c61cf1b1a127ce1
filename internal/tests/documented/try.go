package documented

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	inText  = regexp.MustCompile("`(?:sudo )?(?:bin/)?scaffold ([^`]+)`")
	context = regexp.MustCompile(`^[a-z ]+ 1$`) // what is signed begins with such words: docs/protocol.md
)

// Each calls do with the words behind scaffold of every command line of a document: whole are those of a shell's block,
// the others stand in the text and may be a part of one.
func Each(text string, do func(line string, words []string, whole bool)) {
	for _, line := range ShellLines(text) {
		for _, w := range Words(line) {
			if args := Program(w, "scaffold", "bin/scaffold"); len(args) > 0 {
				do(line, args, true)
			}
		}
	}
	for _, m := range inText.FindAllStringSubmatch(text, -1) {
		if !context.MatchString(m[1]) {
			do(m[0], Words(m[1])[0], false)
		}
	}
}

// Examples calls complain of each line of a command's examples, which people copy, that is no command of it or of those
// below it. Own takes the words behind scaffold, and says what is wrong.
func Examples(cmd *cobra.Command, own func(words []string) string, complain func(path, line, why string)) {
	for line := range strings.Lines(strings.ReplaceAll(cmd.Example, "\\\n", " ")) {
		for _, w := range Words(strings.TrimSpace(line)) {
			if args := Program(w, "scaffold"); len(args) > 0 {
				if why := own(args); why != "" {
					complain(cmd.CommandPath(), strings.TrimSpace(line), why)
				}
			}
		}
	}
	for _, sub := range cmd.Commands() {
		Examples(sub, own, complain)
	}
}

// Try finds a command below root and parses its flags, and where all of it is written counts its arguments; it runs nothing.
func Try(root *cobra.Command, words []string, all bool) string {
	if slices.Contains([]string{"help", "completion", "--version", "--help"}, words[0]) {
		return ""
	}
	cmd, rest, err := root.Find(words)
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
