package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/settings"
)

// A manual writes a page of the manual in the man macros that every man program knows.
type manual struct{ strings.Builder }

func newManual(title string, section int, short string) *manual {
	m := &manual{}
	fmt.Fprintf(m, ".TH %s %d \"\" Scaffold \"Scaffold manual\"\n.SH NAME\n%s \\- %s\n", roff(strings.ToUpper(title)), section, roff(title), roff(short))
	return m
}

// roff writes text so that nothing in it is taken for a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "~", `\(ti`, "^", `\(ha`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// prose writes paragraphs; what is indented or looks like a table stays as it is.
func (m *manual) prose(text string) {
	for para := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(para, " ") || strings.Contains(para, "\n  ") {
			m.verbatim(para)
			continue
		}
		m.WriteString(".PP\n")
		for line := range strings.SplitSeq(para, "\n") {
			m.WriteString(roff(line) + "\n")
		}
	}
}

func (m *manual) verbatim(text string) {
	m.WriteString(".PP\n.nf\n")
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		m.WriteString(roff(line) + "\n")
	}
	m.WriteString(".fi\n")
}

func (m *manual) section(title string) { m.WriteString(".SH " + title + "\n") }

// manPage is the page of a command.
func manPage(cmd *cobra.Command) string {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	m := newManual(name, 1, lower(cmd.Short))
	m.section("SYNOPSIS")
	m.WriteString(".B " + roff(cmd.UseLine()) + "\n")
	m.section("DESCRIPTION")
	m.prose(cmp.Or(cmd.Long, cmd.Short+"."))
	m.commands(cmd)
	m.options(cmd.LocalFlags())
	if cmd.Example != "" {
		m.section("EXAMPLES")
		m.verbatim(cmd.Example)
	}
	m.section("EXIT STATUS")
	for _, e := range exit.Codes {
		fmt.Fprintf(m, ".TP\n.B %d\n%s\n", e.Code, roff(e.Meaning))
	}
	m.section("SEE ALSO")
	also := []string{`.BR scaffold.yaml (5)`}
	if cmd.HasParent() {
		also = append(also, ".BR "+roff(strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-"))+" (1)")
	}
	m.WriteString(strings.Join(also, ",\n") + "\n")
	return m.String()
}

// lower begins a line of NAME as they all begin.
func lower(short string) string { return strings.ToLower(short[:1]) + short[1:] }

func (m *manual) commands(cmd *cobra.Command) {
	for i, sub := range shown(cmd) {
		if i == 0 {
			m.section("COMMANDS")
		}
		fmt.Fprintf(m, ".TP\n.BR %s (1)\n%s\n", roff(strings.ReplaceAll(sub.CommandPath(), " ", "-")), roff(sub.Short))
	}
}

// shown are the commands below one that have a page.
func shown(cmd *cobra.Command) (all []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && !sub.IsAdditionalHelpTopicCommand() {
			all = append(all, sub)
		}
	}
	return all
}

func (m *manual) options(flags *pflag.FlagSet) {
	first := true
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if first {
			m.section("OPTIONS")
			first = false
		}
		m.option(f)
	})
}

func (m *manual) option(f *pflag.Flag) {
	kind, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	fmt.Fprintf(m, ".TP\n.B %s %s\n%s", roff(name), roff(kind), roff(usage))
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
		fmt.Fprintf(m, " (default %s)", roff(f.DefValue))
	}
	m.WriteString("\n")
}

const aboutFiles = `The daemons of Scaffold read their flags from files, when --config names one. The units name
/etc/scaffold/controld.yaml, /etc/scaffold/routerd.yaml and /etc/scaffold/hostd.yaml; "scaffold install"
writes them.

A file is YAML: one mapping, whose keys are the daemon's flags without the dashes. What can be repeated is a
list; a single value is a list of one, an empty list takes the default away. Times are written as 500ms or 2s.
Flags that are typed win over the file.

The whole file is checked before anything is done. An unknown key, a value that does not fit and a key that
stands twice are errors with file and line, and the daemon ends with exit code 2. "scaffold hostd --config
FILE --check" says what is wrong and does nothing else.`

const filesExample = `  # /etc/scaffold/hostd.yaml
  name: s1
  uplink: [eth0, eth1]
  controller: http://[2001:db8::1]:23728`

// filesPage is scaffold.yaml(5): the keys of each daemon's file.
func filesPage(root *cobra.Command) string {
	m := newManual("scaffold.yaml", 5, "configuration files of scaffold's daemons")
	m.section("DESCRIPTION")
	m.prose(aboutFiles)
	m.section("EXAMPLE")
	m.verbatim(filesExample)
	for _, name := range []string{"controld", "routerd", "hostd"} {
		cmd, _, err := root.Find([]string{name})
		if err != nil {
			panic("cli: " + err.Error()) // the names are ours
		}
		m.section("KEYS OF " + strings.ToUpper(name))
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !settings.NotInFile(f.Name) {
				kind, usage := pflag.UnquoteUsage(f)
				fmt.Fprintf(m, ".TP\n.B %s: %s\n%s\n", roff(f.Name), roff(cmp.Or(kind, "true|false")), roff(usage))
			}
		})
	}
	m.section("SEE ALSO")
	m.WriteString(".BR scaffold\\-controld (1),\n.BR scaffold\\-routerd (1),\n.BR scaffold\\-hostd (1),\n.BR scaffold\\-install (1)\n")
	return m.String()
}

// eachPage calls write with the path below /usr/share/man of every page and what it holds.
func eachPage(root *cobra.Command, write func(path, text string) error) error {
	if err := write("man5/scaffold.yaml.5", filesPage(root)); err != nil {
		return err
	}
	var walk func(*cobra.Command) error
	walk = func(cmd *cobra.Command) error {
		path := "man1/" + strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		if err := write(path, manPage(cmd)); err != nil {
			return err
		}
		for _, sub := range shown(cmd) {
			if err := walk(sub); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(root)
}

// completions are the files by which shells complete our commands, below /usr/share.
var completions = map[string]func(*cobra.Command, io.Writer) error{
	"bash-completion/completions/scaffold":    func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) },
	"zsh/vendor-completions/_scaffold":        func(c *cobra.Command, w io.Writer) error { return c.GenZshCompletion(w) },
	"fish/vendor_completions.d/scaffold.fish": func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
}
