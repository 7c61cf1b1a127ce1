package install

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/views"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// UpgradeCommand is `scaffold upgrade`.
func UpgradeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Say which daemon runs which version, and in which order to replace them",
		Long: `Upgrade asks the controller who runs what, and compares it with the version of this command. It
changes nothing. Daemons are replaced one by one, in the order of the list: controllers, the one that
leads last, then routers, then hosts. Each leaves its part in the kernel to the next one, so flows go on:

  systemctl restart scaffold-controld        (-routerd, -hostd)

PROTOCOL is what a daemon and the controller speak to each other; a daemon that the controller does
not understand is not in the network, and its log says which of both is to be upgraded.

With --check it ends with 7 while a daemon runs another version.`,
		Example: `  scaffold upgrade
  scaffold upgrade --check && echo all of one version`,
		Args: cobra.NoArgs,
	}
	a := remote.AddAdmin(cmd)
	check := cmd.Flags().Bool("check", false, "end with 7 if a daemon runs another version than this command")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		all, err := daemonVersions(a, cmd)
		if err != nil {
			return err
		}
		if err := printVersions(a, cmd.OutOrStdout(), all); err != nil {
			return err
		}
		if n := behind(all); n > 0 && *check {
			return exit.Failf(exit.Unmet, "replace them from the top of the list down", "%d of %s run another version than this command (%s)", n, command.Count(uint32(len(all)), "daemon"), obs.Version())
		}
		return nil
	}
	return cmd
}

// A daemonVersion is one daemon of the list, in the order of replacing.
type daemonVersion struct {
	Kind     string `json:"kind"` // "controller", "router", "host"
	Name     string `json:"name"`
	Version  string `json:"version"`
	Protocol string `json:"protocol"`
	State    string `json:"state"`
	Upgrade  bool   `json:"upgrade"` // runs another version than the command
}

func daemonVersions(a remote.Admin, cmd *cobra.Command) ([]daemonVersion, error) {
	client, endpoint, err := a.DialAdmin()
	if err != nil {
		return nil, err
	}
	status, err := remote.Ask(cmd.Context(), client.GetStatus, &apiv1.GetStatusRequest{}, endpoint, "")
	if err != nil {
		return nil, err
	}
	routers, err := remote.Ask(cmd.Context(), client.ListRouters, &apiv1.ListRoutersRequest{}, endpoint, "")
	if err != nil {
		return nil, err
	}
	hosts, err := remote.Ask(cmd.Context(), client.ListHosts, &apiv1.ListHostsRequest{}, endpoint, "")
	if err != nil {
		return nil, err
	}
	all, err := remote.Ask(cmd.Context(), unlessNew(client.ListControllers), &apiv1.ListControllersRequest{}, endpoint, "")
	if err != nil {
		return nil, err
	}
	return inOrder(status, all.Controllers, routers.Routers, hosts.Hosts, obs.Version()), nil
}

// unlessNew is a call whose answer is empty where the controller is of before there was such a call.
func unlessNew[Req, Resp any](call func(context.Context, *connect.Request[Req]) (*connect.Response[Resp], error)) func(context.Context, *connect.Request[Req]) (*connect.Response[Resp], error) {
	return func(ctx context.Context, req *connect.Request[Req]) (*connect.Response[Resp], error) {
		answer, err := call(ctx, req)
		if connect.CodeOf(err) == connect.CodeUnimplemented {
			return connect.NewResponse(new(Resp)), nil
		}
		return answer, err
	}
}

// inOrder lists controllers, the one that leads last of them so that the lead changes once, routers, hosts; those that
// are not here are not replaced.
func inOrder(status *apiv1.Status, controllers []*apiv1.Controller, routers []*apiv1.Router, hosts []*apiv1.Host, own string) []daemonVersion {
	speaks := versions.Told(status.Speaks.GetFrom(), status.Speaks.GetTo())
	var all []daemonVersion
	for _, c := range controllers {
		if c.Name != status.Leader {
			all = append(all, daemonVersion{Kind: "controller", Name: c.Name, Version: c.Version, Protocol: "-", State: c.State})
		}
	}
	state := "up"
	if len(all) > 0 {
		state = "leads"
	}
	all = append(all, daemonVersion{Kind: "controller", Name: status.Leader, Version: status.Version, Protocol: speaks.String(), State: state})
	views.SortRouters(routers)
	for _, r := range routers {
		all = append(all, daemonVersion{Kind: "router", Name: r.Name, Version: r.Version, Protocol: fmt.Sprint(max(r.Protocol, 1)), State: r.State})
	}
	slices.SortFunc(hosts, func(x, y *apiv1.Host) int { return strings.Compare(x.Name, y.Name) })
	for _, h := range hosts {
		all = append(all, daemonVersion{Kind: "host", Name: h.Name, Version: h.Version, Protocol: fmt.Sprint(max(h.Protocol, 1)), State: h.State})
	}
	for i := range all {
		d := &all[i]
		if d.Version == "" {
			d.Version = "unknown"
		}
		d.Upgrade = d.Version != own && d.State != "gone"
	}
	return all
}

func behind(all []daemonVersion) (n int) {
	for _, d := range all {
		if d.Upgrade {
			n++
		}
	}
	return n
}

func printVersions(a remote.Admin, w io.Writer, all []daemonVersion) error {
	if a.JSON() {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"version": obs.Version(), "daemons": all})
	}
	return output.Draw(w, func(t *output.Table) { drawVersions(t, all) })
}

func drawVersions(t *output.Table, all []daemonVersion) {
	t.Row("DAEMON", "NAME", "VERSION", "PROTOCOL", "STATE", "NEXT")
	next := "replace it first"
	for _, d := range all {
		do := ""
		if d.Upgrade {
			do, next = next, "then this"
		}
		t.Row(d.Kind, d.Name, d.Version, d.Protocol, d.State, do)
	}
}
