package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	service "scaffold.dev/scaffold/internal/core/names"
)

// policyFlags are the flags of a policy; only those that were given change anything.
type policyFlags struct {
	flags *pflag.FlagSet
	want  apiv1.Policy
}

// A patienceFlag is in ms, as in a policy.
type patienceFlag uint32

// String, Set and Type make it a flag.
func (p *patienceFlag) String() string { return (time.Duration(*p) * time.Millisecond).String() }

// Set implements pflag.Value.
func (p *patienceFlag) Set(text string) (err error) {
	ms, err := service.ParsePatience(text)
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
	flags.StringVar(&p.want.Ready, "ready", "", "when an instance may serve: tcp, http:/path or exec:command (default: when it listens)")
	flags.Uint32Var(&p.want.Weight, "weight", 100, "weight of hosts that nobody gave one, 1 to 65535")
	flags.StringVar(&p.want.Datagrams, "datagrams", "bound", "bound: a reply binds the flow; unbound: each datagram is resolved; unset: that too, both ways")
	flags.Uint32Var(&p.want.Dscp, "dscp", 0, "DSCP that hosts mark its packets with, 0 to 63")
	return p
}

// apply copies what was given into policy.
func (p *policyFlags) apply(policy *apiv1.Policy) {
	set := map[string]func(){
		"failover":  func() { policy.Failover = p.want.Failover },
		"patience":  func() { policy.PatienceMs = p.want.PatienceMs },
		"drain":     func() { policy.Drain = p.want.Drain },
		"ready":     func() { policy.Ready = p.want.Ready },
		"weight":    func() { policy.Weight = p.want.Weight },
		"datagrams": func() { policy.Datagrams = p.want.Datagrams },
		"dscp":      func() { policy.Dscp = p.want.Dscp },
	}
	p.flags.Visit(func(f *pflag.Flag) {
		if change, ok := set[f.Name]; ok {
			change()
		}
	})
}

func (p *policyFlags) given() bool {
	n := 0
	for _, name := range []string{"failover", "patience", "drain", "ready", "weight", "datagrams", "dscp"} {
		if p.flags.Changed(name) {
			n++
		}
	}
	return n > 0
}

func servicePolicy(a admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy NAME",
		Short: "Change how a service is served; flags that are not given stay as they are",
		Example: `  scaffold service policy web --ready http:/healthz
  scaffold service policy files --failover continue --drain shed
  scaffold service policy trucks --patience 5s
  scaffold service policy voice --dscp 46`,
		Args: cobra.ExactArgs(1),
	}
	policy := addPolicy(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !policy.given() {
			return failf(ExitUsage, "`scaffold service show "+args[0]+"` prints the policy", "policy: nothing to change was given")
		}
		return a.change(cmd, func(ctx context.Context, c apiv1connect.AdminClient, at string) (*apiv1.Service, error) {
			now, err := ask(ctx, c.GetService, &apiv1.GetServiceRequest{Name: args[0]}, at, listServices)
			if err != nil {
				return nil, err
			}
			req := &apiv1.UpdatePolicyRequest{Name: now.Name, Policy: now.Policy}
			if req.Policy == nil {
				req.Policy = &apiv1.Policy{}
			}
			policy.apply(req.Policy)
			return ask(ctx, c.UpdatePolicy, req, at, listServices)
		})
	}
	return cmd
}
