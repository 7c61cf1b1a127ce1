package boost

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/lane"
)

func allow(a remote.Admin) *cobra.Command {
	e := &apiv1.BoostEntry{}
	var from, until string
	cmd := &cobra.Command{
		Use:   "allow NAME --client PREFIX --server PREFIX",
		Short: "Have agents carry the connections of some clients to some servers",
		Long: `Allow adds an entry: TCP connections of the clients to the servers are carried by agents of their two sites
from now on, or within a time. Connections that exist already stay as they are. Each connection is of one entry
at most; what entries have in common is refused.`,
		Example: `  scaffold boost allow files --client 192.0.2.0/24 --server 198.51.100.7 --port 443
  scaffold boost allow nightly --client 192.0.2.0/24 --server 198.51.100.0/24 --from 2026-12-01T22:00:00Z --until 2026-12-02T04:00:00Z
  scaffold boost allow web --client 192.0.2.0/24 --server 198.51.100.7 --port 80 --accept at-once
  scaffold boost allow mail --client 192.0.2.0/24 --server 198.51.100.8 --port 25 --mode rewrite
  scaffold boost allow today --client 2001:db8:1::/48 --server 2001:db8:2::/48 --until +8h`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			now := time.Now()
			if e.FromUnixMs, err = when("from", from, now); err != nil {
				return err
			}
			if e.UntilUnixMs, err = when("until", until, now); err != nil {
				return err
			}
			client, endpoint, err := a.DialBoost()
			if err != nil {
				return err
			}
			e.Name = args[0]
			answer, err := remote.Ask(cmd.Context(), client.AllowBoost, e, endpoint, listSites)
			if err != nil {
				return err
			}
			if e.Accept == lane.AtOnce && answer.Accept == "" { // it answers with a word
				return exit.Failf(exit.Failed, "", "entry %s is there, and its clients wait for the server's answer: the controller is of a version that knows no --accept; upgrade it, deny the entry and allow it again", e.Name)
			}
			if e.Mode == lane.Rewritten && answer.Mode == "" {
				return exit.Failf(exit.Failed, "", "entry %s is there, and agents are to be at ports of the switches: the controller is of a version that knows no --mode; upgrade it, deny the entry and allow it again", e.Name)
			}
			return a.Print(cmd.OutOrStdout(), answer, func(t *output.Table) { drawEntries(t, []*apiv1.BoostEntry{answer}) })
		},
	}
	set := cmd.Flags()
	set.Var(&hostsFlag{take: func(text string) { e.Client = text }}, "client", "address or prefix of the clients, all of one site")
	set.Var(&hostsFlag{take: func(text string) { e.Server = text }}, "server", "address or prefix of the servers, all of another site")
	command.AddNumber(set, &e.Port, "port", 0, 1, 65535, "of the servers (default: any)")
	set.Var(wordFlag{&e.Mode, lane.Modes}, "mode", "how switches send them to agents: steer, to their ports; rewrite, to wherever they are, by rules for each connection")
	set.Var(wordFlag{&e.Accept, lane.Accepts}, "accept", "when clients are accepted: answered, once the server has; at-once, and a server's no comes late, as a reset")
	set.StringVar(&from, "from", "", "when connections may begin: a time as 2026-12-01T22:00:00Z, or +2h from now (default: at once)")
	set.StringVar(&until, "until", "", "when no more connections begin that are boosted; those that are go on (default: never)")
	cmd.MarkFlagRequired("client")
	cmd.MarkFlagRequired("server")
	return cmd
}

// A wordFlag is one of several words, of which the first is the default.
type wordFlag struct {
	word *string
	all  []string
}

// String makes it a flag, with Set, which refuses other words at once, and Type.
func (f wordFlag) String() string {
	if f.word == nil { // pflag asks a zero one
		return ""
	}
	return cmp.Or(*f.word, f.all[0])
}

// Set implements pflag.Value.
func (f wordFlag) Set(text string) error {
	if !slices.Contains(f.all, text) {
		return fmt.Errorf("want %s", strings.Join(f.all, " or "))
	}
	*f.word = text
	return nil
}

// Type implements pflag.Value.
func (f wordFlag) Type() string { return "word" }

// A hostsFlag is a prefix or an address, or where there may be more, several with commas between them. It hands over each.
type hostsFlag struct {
	take func(string)
	more bool
	said string
}

// String makes it a flag, with Set, which refuses what is neither before anybody is asked, and Type.
func (f *hostsFlag) String() string { return f.said }

// Set implements pflag.Value.
func (f *hostsFlag) Set(all string) error {
	f.said = all
	list := []string{all}
	if f.more {
		list = strings.Split(all, ",")
	}
	for _, text := range list {
		if _, err := lane.ParsePrefix(text); err != nil {
			return err
		}
		f.take(text)
	}
	return nil
}

// Type implements pflag.Value.
func (*hostsFlag) Type() string { return "prefix" }

// when reads a moment, as milliseconds since 1970; 0 where none is named.
func when(flag, text string, now time.Time) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if after, ok := strings.CutPrefix(text, "+"); ok {
		if d, err := time.ParseDuration(after); err == nil && d > 0 {
			return now.Add(d).UnixMilli(), nil
		}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, exit.Failf(exit.Usage, "", "--%s %.40q: expected a time as 2026-12-01T22:00:00Z, or a while from now as +2h", flag, text)
	}
	return t.UnixMilli(), nil
}

func deny(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use: "deny NAME", Short: "Take an entry away: connections that begin pass unboosted, those that are boosted go on until they end",
		Example: "  scaffold boost deny files", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.DialBoost()
			if err != nil {
				return err
			}
			answer, err := remote.Ask(cmd.Context(), client.DenyBoost, &apiv1.DenyBoostRequest{Name: args[0]}, endpoint, listEntries)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), answer, func(*output.Table) {})
		},
	}
}
