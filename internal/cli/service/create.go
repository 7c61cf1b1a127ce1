package service

import (
	"context"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/sid"
)

func serviceCreate(a remote.Admin) *cobra.Command {
	req := &apiv1.CreateServiceRequest{}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Give a service a name and an address",
		Long: `Create reserves a name and assigns a serviceID, and with it the address that programs connect to.
The service has no instance until a program on some host listens on its address; nothing else
needs to be told.`,
		Example: `  scaffold service create web
  scaffold service create cache --datagrams unbound
  scaffold service create db --ready tcp --weight 10
  scaffold service create db --server s1,s2 --allow service:web
  scaffold service create bank --key bank.key.pub`,
	}
	cmd.Flags().StringVar(&req.Sid, "sid", "", "serviceID, as in 00000001-00c0ffee00c0ffee (default: one is assigned)")
	cmd.Flags().Uint32Var(&req.Ss, "ss", 0, "service system that owns the name (default: the network's own)")
	command.Exclusive(cmd, "sid ss") // a serviceID names its service system
	policy := addPolicy(cmd.Flags())
	var access accessFlags
	access.add(cmd, true)
	cmd.Args = cobra.MatchAll(cobra.ExactArgs(1), access.check)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkServiceID(req.Sid); err != nil {
			return err
		}
		req.Name, req.Policy, req.Access = args[0], &apiv1.Policy{}, &apiv1.Access{}
		if err := access.into(cmd, req.Access); err != nil {
			return err
		}
		policy.apply(req.Policy)
		return change(a, cmd, func(ctx context.Context, c apiv1connect.AdminClient, at string) (*apiv1.Service, error) {
			return remote.Ask(ctx, c.CreateService, req, at, remote.ListServices)
		})
	}
	return cmd
}

func checkServiceID(s string) error {
	if s == "" {
		return nil
	}
	_, err := sid.ParseServiceID(s)
	return exit.Fail(exit.Usage, "", err)
}
