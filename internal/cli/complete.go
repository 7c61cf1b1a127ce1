package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/members"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/service"
)

// completeTime bounds what somebody waits who presses Tab.
const completeTime = 700 * time.Millisecond

// argumentSources and flagSources are by what help calls them. NAME is that of the thing that the group of commands is
// about.
var (
	argumentSources = map[string]source{
		"service NAME": serviceSource, "service NAME|SERVICEID|ADDRESS": serviceSource, "SERVICE": serviceSource, "SERVICE...": serviceSource,
		"HOST=WEIGHT...": weighed, "HOST": hostSource, "host NAME": hostSource, "router NAME": routerSource,
		"FROM": hostSource, "TO": hostSource, "FLOW": flowSource, "FLOW|SERVICE": either(serviceSource, flowSource),
		"token ID": tokenSource, "key ID": keySource, "admin NAME": memberSource("admin"), "controller NAME": controllerSource,
		"switch NAME": switchSource, "flow NAME": switchSource, "guest rm NAME": guestSource,
	}
	flagSources = map[string]source{
		"service": serviceSource, "serve": serviceSource, "instance": hostSource, "host": hostSource, "server": serving, "allow": allowed,
		"by": either(memberSource(""), roles), "of": either(serviceSource, either(hostSource, routerSource)),
	}
	wordSources = map[string][]string{
		"mode": {"wait", "shed"}, "output": {"table", "json"}, "failover": {"reset", "continue"}, "datagrams": {"bound", "unbound", "unset"},
		"role": members.Roles, "ready": {service.ReadyNone, "tcp", "http:/"},
	}
)

// completeNames has shells complete names of services, hosts, routers and labs: their scripts ask this program, which asks
// the network.
func completeNames(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		completeNames(sub)
	}
	if !cmd.HasParent() || cmd.HasSubCommands() || cmd.RunE == nil {
		return
	}
	about, names := cmd.Parent().Name(), command.ArgumentNames(cmd)
	argument := func(i int) source {
		i = min(i, len(names)-1)
		if i < 0 || cmd.Name() == "create" {
			return nil
		}
		name := strings.Trim(names[i], "[]")
		for _, key := range []string{about + " " + cmd.Name() + " " + name, about + " " + name, name} {
			if s := argumentSources[key]; s != nil {
				return s
			}
		}
		return nil
	}
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && argument(0) != nil {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) >= len(names) && !strings.HasSuffix(names[len(names)-1], "...") && !strings.HasSuffix(names[len(names)-1], "...]") {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return complete(cmd, argument(len(args)), args, typed)
		}
	}
	each := func(f *pflag.Flag) {
		if _, there := cmd.GetFlagCompletionFunc(f.Name); there {
			return
		}
		switch from, words := flagSources[f.Name], wordSources[f.Name]; {
		case f.Name == "lab":
			cmd.RegisterFlagCompletionFunc("lab", completeLabs) //nolint:errcheck // the flag is there
		case words != nil && f.Value.Type() != "bool":
			cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) //nolint:errcheck // likewise
		case from != nil && f.Value.Type() != "bool" && cmd.Flags().Lookup("api") != nil || f.Name == "service" && cmd.Name() == "run":
			cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) { //nolint:errcheck // likewise
				return complete(cmd, from, nil, typed)
			})
		}
	}
	cmd.InheritedFlags() // which puts them beside its own
	cmd.Flags().VisitAll(each)
}

// complete asks where the command itself would ask.
func complete(cmd *cobra.Command, from source, have []string, typed string) (found []string, _ cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	f := &remote.HostDaemons{Admin: remote.Admin{Remote: remote.Add(pflag.NewFlagSet("", pflag.ContinueOnError))}}
	for flag, to := range map[string]*string{"api": &f.API, "lab": &f.Lab, "host": &f.Host} {
		if given := cmd.Flags().Lookup(flag); given != nil {
			*to = given.Value.String()
		}
	}
	if from == nil {
		return nil, directive
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	all, _ := command.Interruptible(ctx, func() ([]string, error) { // to find out where to ask may take longer, too
		return from(ctx, f), nil
	})
	for _, name := range all {
		word, _, _ := strings.Cut(name, "\t")
		if strings.HasPrefix(word, typed) && !slices.Contains(have, word) {
			found = append(found, name)
		}
		if strings.HasSuffix(name, "=") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	slices.Sort(found)
	return found, directive
}

func completeLabs(_ *cobra.Command, _ []string, typed string) (found []string, _ cobra.ShellCompDirective) {
	labs, _ := filepath.Glob(filepath.Join(remote.RunDir, "lab", typed+"*")) // a bad pattern is nobody's name
	for _, dir := range labs {
		if name := filepath.Base(dir); !strings.HasPrefix(name, ".") { // else it is a lock
			found = append(found, name)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
