package service

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"

	corenames "scaffold.dev/scaffold/internal/core/names"
)

// policyFlags are the flags of a policy; only those that were given change anything.
type policyFlags struct {
	flags *pflag.FlagSet
	want  apiv1.Policy
}

// ReadyNone takes a check away: an empty value may be a variable of the shell that is not set.
const ReadyNone = "none"

// A patienceFlag is in ms, as in a policy.
type patienceFlag uint32

// String, Set and Type make it a flag.
func (p *patienceFlag) String() string { return (time.Duration(*p) * time.Millisecond).String() }

// Set implements pflag.Value.
func (p *patienceFlag) Set(text string) (err error) {
	ms, err := corenames.ParsePatience(text)
	*p = patienceFlag(ms)
	return err
}

// Type implements pflag.Value.
func (p *patienceFlag) Type() string { return "duration" }

func addPolicy(flags *pflag.FlagSet) *policyFlags {
	p := &policyFlags{flags: flags}
	flags.StringVar(&p.want.Failover, "failover", "reset", "flows of an instance that is gone: reset (clients are told and may try again) or continue (another instance that can resume goes on)")
	flags.Var((*patienceFlag)(&p.want.PatienceMs), "patience", "how long a host that is cut off or unplugged is waited for before its flows turn to other instances, at most 1m")
	flags.StringVar(&p.want.Drain, "drain", "wait", "flows of an instance that drains: wait (they end in peace) or shed (they fail over)")
	flags.StringVar(&p.want.Ready, "ready", "", "when an instance may serve: tcp, http:/path, exec:NAME of a command that the hosts list as --exec-check, or none: when it listens (default none)")
	command.EmptyMeans(flags, "ready", "none lets it serve when it listens")
	command.AddNumber(flags, &p.want.Weight, "weight", 100, 1, corenames.MaxWeight, "weight of hosts that nobody gave one, 1 to 65535")
	flags.StringVar(&p.want.Datagrams, "datagrams", "bound", "bound: a reply binds the flow; unbound: each datagram is resolved; unset: that too, both ways")
	flags.BoolVar(&p.want.Boost, "boost", false, "agents of boost carry its TCP connections from sites where nobody serves it; --boost=false ends that")
	command.AddNumber(flags, &p.want.Dscp, "dscp", 0, 0, corenames.MaxDSCP, "DSCP that hosts mark its packets with, 0 to 63")
	return p
}

// apply copies what was given into policy.
func (p *policyFlags) apply(policy *apiv1.Policy) {
	set := map[string]func(){
		"failover":  func() { policy.Failover = p.want.Failover },
		"patience":  func() { policy.PatienceMs = p.want.PatienceMs },
		"drain":     func() { policy.Drain = p.want.Drain },
		"ready":     func() { policy.Ready = readyOf(p.want.Ready) },
		"weight":    func() { policy.Weight = p.want.Weight },
		"datagrams": func() { policy.Datagrams = p.want.Datagrams },
		"dscp":      func() { policy.Dscp = p.want.Dscp },
		"boost":     func() { policy.Boost = p.want.Boost },
	}
	p.flags.Visit(func(f *pflag.Flag) {
		if change, ok := set[f.Name]; ok {
			change()
		}
	})
}

// send orders the policy that the service has now, with what was given.
func (p *policyFlags) send(ctx context.Context, c apiv1connect.AdminClient, at string, now *apiv1.Service) (*apiv1.Service, error) {
	req := &apiv1.UpdatePolicyRequest{Name: now.Name, Policy: now.Policy, Version: now.Version, Replace: now.Version == 0} // a controller of before tells none
	if req.Policy == nil {
		req.Policy = &apiv1.Policy{}
	}
	p.apply(req.Policy)
	return remote.Ask(ctx, c.UpdatePolicy, req, at, remote.ListServices)
}

// part is what a service has of what was given.
func (p *policyFlags) part(s *apiv1.Service) string {
	has := s.GetPolicy()
	of := map[string]any{
		"failover": has.GetFailover(), "patience": has.GetPatienceMs(), "drain": has.GetDrain(), "ready": has.GetReady(),
		"weight": has.GetWeight(), "datagrams": has.GetDatagrams(), "dscp": has.GetDscp(), "boost": has.GetBoost(),
	}
	text := ""
	p.flags.Visit(func(f *pflag.Flag) {
		if value, ok := of[f.Name]; ok {
			text += fmt.Sprintf("%s=%v\n", f.Name, value)
		}
	})
	return text
}

func (p *policyFlags) given() bool {
	n := 0
	for _, name := range []string{"failover", "patience", "drain", "ready", "weight", "datagrams", "dscp", "boost"} {
		if p.flags.Changed(name) {
			n++
		}
	}
	return n > 0
}

func servicePolicy(a remote.Admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy NAME",
		Short: "Change how a service is served; flags that are not given stay as they are",
		Example: `  scaffold service policy web --ready http:/healthz
  scaffold service policy files --failover continue --drain shed
  scaffold service policy trucks --patience 5s
  scaffold service policy voice --dscp 46
  scaffold service policy files --boost`,
		Args: cobra.ExactArgs(1),
	}
	policy := addPolicy(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !policy.given() {
			return exit.Failf(exit.Usage, "`scaffold service show "+args[0]+"` prints the policy", "policy: nothing to change was given")
		}
		c, at, err := a.DialAdmin()
		if err != nil {
			return err
		}
		s, err := edit(cmd.Context(), c, at, args[0], policy.part, policy.send)
		return answered(a, cmd, s, err)
	}
	return cmd
}

func readyOf(text string) string {
	if text == ReadyNone {
		return ""
	}
	return text
}
