// Package remote is how a command finds the daemon that it speaks to, speaks to it, and says what went wrong.
package remote

import (
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/cli/output"
)

// A Choice is where commands ask, and why there.
type Choice struct {
	Endpoint string `json:"endpoint"`
	Why      string `json:"why"`
}

// Choose finds the endpoint of the Admin API. Who may do more comes first: at a controller of this machine, or as an
// administrator who logged in, everything may be asked; a host's daemon asks in the host's name, which may mostly look.
func (r *Remote) Choose() (Choice, error) {
	switch {
	case r.API != "":
		return Choice{r.API, "--api names it"}, nil
	case r.Lab != "":
		return r.chooseLab("--lab names the lab")
	case r.Getenv(APIVariable) != "":
		return Choice{r.Getenv(APIVariable), "$" + APIVariable + " names it"}, nil
	}
	controller, host := filepath.Join(r.Run, "controld.sock"), filepath.Join(r.Run, "hostd.sock")
	there := r.Alive(controller)
	switch login := r.Login(); {
	case there && r.Mine(controller):
		return Choice{"unix:" + controller, "the controller of this machine"}, nil
	case login != "":
		return Choice{login, "this user is logged in there (scaffold login)"}, nil
	case r.Alive(host):
		return Choice{"unix:" + host, "the host daemon of this machine, which hands questions on to its controller"}, nil
	case there:
		return Choice{"unix:" + controller, "the controller of this machine"}, nil
	}
	return r.chooseLab("the only lab that runs on this machine")
}

func (r *Remote) chooseLab(why string) (Choice, error) {
	sockets, err := r.labSockets("*", "controld.sock")
	if err != nil {
		return Choice{}, err
	}
	return Choice{"unix:" + sockets[0].Path, why}, nil
}

// Writable reports whether this user may connect to a socket.
func Writable(socket string) bool { return unix.Access(socket, unix.W_OK) == nil }

// ConfigCommand is "scaffold config".
func ConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Say which daemons commands ask from here, and why these",
		Long: `Config says where commands ask that are about the network, and where those are that are about this machine's
flows and guests. The first of these is taken:

  --api, --lab, $` + APIVariable + `
  the controller of this machine, if this user may use its socket
  the controllers that this user is logged in to (scaffold login), of one network
  the host daemon of this machine
  the only lab that runs on this machine`,
		Example: "  scaffold config\n  scaffold config --lab web",
		Args:    cobra.NoArgs,
	}
	a := AddAdmin(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		network, err := a.Choose()
		if err != nil {
			return err
		}
		all := map[string]Choice{"network": network}
		if local, err := a.Hosts(""); err == nil && len(local) == 1 {
			all["host"] = Choice{Endpoint: local[0].Path}
		}
		if a.JSON() {
			return output.WriteValue(cmd.OutOrStdout(), all)
		}
		return output.Draw(cmd.OutOrStdout(), func(t *output.Table) {
			t.Row("ABOUT", "ASKS", "BECAUSE IT IS")
			t.Row("the network", network.Endpoint, network.Why)
			if local, ok := all["host"]; ok {
				t.Row("flows and guests", local.Endpoint, "the host daemon")
			}
		})
	}
	return cmd
}
