// Package labcmd is "scaffold lab": networks on this machine.
package labcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/processes"
)

// Command is "scaffold lab".
func Command(programs emud.Programs) *cobra.Command {
	cmd := command.Group("lab", "Run whole networks on this machine",
		labUpCommand(), labDownCommand(), labExecCommand(), labStatusCommand(), labRunCommand(), labPlotCommand(), labCheckCommand(),
		labActionCommand("start", "NODE[/PROGRAM]", "Start a program, or a node's daemon and programs", "s1/nginx"),
		labActionCommand("kill", "NODE[/PROGRAM] [SIGNAL]", "Send a signal, SIGKILL unless another is named, to all processes of a program or node", "s1/nginx"),
		labActionCommand("stop", "NODE[/PROGRAM]", "Stop all processes of a program or node as by SIGSTOP", "s1/nginx"),
		labActionCommand("cont", "NODE[/PROGRAM]", "Let stopped processes go on", "s1/nginx"),
		labActionCommand("restart", "NODE[/PROGRAM]", "Kill and start a program, or a node's daemon", "ctl"),
		labActionCommand("cut", "NODE [PEER]", "Lose all packets on a node's links, or on the one to PEER; the carrier stays", "s1"),
		labActionCommand("unplug", "NODE [PEER]", "Take a node's links down, or the one to PEER", "s1"),
		labActionCommand("heal", "NODE [PEER]", "Undo cut and unplug", "s1"),
		labActionCommand("remove", "NODE PEER", "Delete the interfaces of the link to PEER, until heal makes new ones", "c1 r1"),
		labActionCommand("move", "HOST FROM TO [gap TIME] [first]", "Unplug a host's link to one router and plug in that to another", "c1 r1 r2 gap 300ms"),
		labActionCommand("fail", "NODE[:PEER] [PEER]", "Break a node, its link to PEER, or with NODE:PEER its interface there", "r7 r8"),
		labActionCommand("repair", "NODE[:PEER] [PEER]", "Undo fail", "r7 r8"),
		wordy(labActionCommand("partition", "NODE,... [| NODE,...]", "Cut all links between parts of the network", "'r1,r2 | r3,r4'"), 1),
		labActionCommand("unite", "", "Undo partition", ""),
		wordy(labActionCommand("flap", "NODE PEER every TIME times N", "Break and mend a link again and again", "r7 r8 every 200ms times 5"), 6),
		wordy(labActionCommand("upgrade", "PROGRAM SHARE% [seed N] [PARAMETER=VALUE...]", "Give a share of the emulated routers another program while they run", "forward 30% seed 7 icmp-rate=10"), 2),
		labNodeCommand(), labPcapCommand(), labReplayCommand(), labUpdatesCommand(), labCertificateCommand(),
		labLinkCommand(), labTopologyCommand(), labServeCommand(), labEngineCommand(programs),
	)
	cmd.Long = `A lab is a network of hosts, routers and a controller, each in a network namespace of its own, with
real programs on the hosts. A file describes it; examples/two.yaml is the smallest.

The namespaces are named scaf-LAB-NODE, so that "ip netns exec" reaches them too. A lab that a crash
left behind is removed by the next "lab up" or "lab down".`
	return cmd
}

// addLab is the --lab flag of commands that speak to a lab that is up.
func addLab(cmd *cobra.Command) *string {
	return cmd.Flags().String("lab", "", "name of the lab (default: the only one)")
}

// labActionCommand makes a command of an action, as a timeline writes it.
func labActionCommand(verb, args, short, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     strings.TrimSpace(verb + " " + args),
		Short:   short,
		Example: strings.TrimRight("  scaffold lab "+verb+" "+example, " "),
		Args:    argumentCount(args),
	}
	name := addLab(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return labAct(cmd.Context(), cmd.ErrOrStderr(), *name, verb+" "+strings.Join(args, " "))
	}
	return cmd
}

// wordy takes any number of words that is not too small; the action says what is wrong with them.
func wordy(cmd *cobra.Command, least int) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(least)
	return cmd
}

// argumentCount follows from how the arguments are written: words in brackets may be left out.
func argumentCount(args string) cobra.PositionalArgs {
	most := len(strings.Fields(args))
	least := most
	for open := args; strings.Contains(open, " ["); least-- {
		_, inside, _ := strings.Cut(open, " [")
		inside, open, _ = strings.Cut(inside, "]")
		least -= strings.Count(inside, " ")
	}
	return cobra.RangeArgs(least, most)
}

func labAct(ctx context.Context, stderr io.Writer, name, text string) error {
	l, err := lab.Open(name, lab.Options{})
	if err != nil {
		return labs.Fail(err)
	}
	a, err := file.ParseAction(text)
	if err == nil {
		err = l.File.CheckAction(a)
	}
	if err != nil {
		return exit.Fail(exit.Usage, "", err)
	}
	if err := l.Do(ctx, a); err != nil {
		return labs.Fail(err)
	}
	err = l.Stays(ctx, a)
	if ended := (*processes.Ended)(nil); errors.As(err, &ended) && ended.Done {
		fmt.Fprintln(stderr, "scaffold:", err)
		return nil
	}
	return labs.Fail(err)
}
