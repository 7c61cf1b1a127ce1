package labcmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/topo"
)

func labTopologyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topology GENERATOR | --read FILE",
		Short: "Generate or read a network, say how it is shaped, print it as a lab file",
		Long: `Prints the nodes and links of a generated network, or of a map in GraphML, GML, node-link JSON or as
CAIDA's AS relationships, as they stand in a lab file. A lab file may have them by one line too:
"topology: {file: FILE}"; docs/lab.md has all keys.

Generators:
` + generatorTexts(),
		Example: "  scaffold lab topology fat-tree --k 8 > tree.yaml\n  scaffold lab topology --read examples/europe.graphml --summary\n" +
			"  scaffold lab topology gabriel --size 1000 --seed 7 --node-link > g.json",
		Args: cobra.MaximumNArgs(1),
	}
	addTopology(cmd.Flags())
	summary := cmd.Flags().Bool("summary", false, "only say how the network is shaped")
	nodeLink := cmd.Flags().Bool("node-link", false, "print node-link JSON, as networkx reads it, and no lab file")
	out := output.Add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		settings, err := topologySettings(cmd.Flags(), args)
		if err != nil {
			return err
		}
		t, err := command.Interruptible(cmd.Context(), func() (*file.Topology, error) { return file.MakeTopology(settings) })
		if err != nil {
			return exit.Fail(exit.Usage, "", err)
		}
		switch {
		case *nodeLink && (*summary || out.JSON()):
			return exit.Failf(exit.Usage, "", "--node-link prints the network, --summary and -o json its shape: which one?")
		case *nodeLink:
			return writeNodeLink(cmd.OutOrStdout(), t.Graph)
		case out.JSON():
			return plainJSON(cmd.OutOrStdout(), t.Graph.Summary())
		case *summary:
			fmt.Fprint(cmd.OutOrStdout(), summaryText(t.Graph.Summary()))
			return nil
		}
		return writeTopology(cmd.OutOrStdout(), t)
	}
	return cmd
}

func generatorTexts() string {
	var text strings.Builder
	for _, g := range topo.Generators {
		options := "--" + strings.Join(g.Required, " --")
		for _, o := range g.Options {
			options += " [--" + o + "]"
		}
		fmt.Fprintf(&text, "  %-9s %-28s %s\n", g.Name, options, g.About)
	}
	return strings.TrimRight(text.String(), "\n")
}

// addTopology makes flags that are called as the keys of a topology in a lab file.
func addTopology(flags *pflag.FlagSet) {
	flags.String("read", "", "a map, in place of a generator")
	flags.String("size", "", "number of nodes")
	flags.String("k", "", "ports of a fat tree's switches")
	flags.String("side", "", "of the square of a Gabriel graph, in km (default 1000)")
	flags.String("seed", "", "of all that is drawn")
	flags.Bool("largest", false, "of a map that falls apart, keep the largest part")
	flags.String("kind", "", "of the nodes: emulated, frr, router, switch or plain (default emulated)")
	flags.String("rate", "", "of each link, over what the map says")
	flags.String("delay", "", "of each link, over what the map says or follows from lengths; none for none")
	flags.String("default-delay", "", "of links of which the map says nothing")
	flags.String("loss", "", "of each link")
	flags.String("mtu", "", "of each link")
	flags.String("cost", "", "of each link: a number, weight or delay")
}

// topologySettings are the flags that were given, as a lab file has them.
func topologySettings(flags *pflag.FlagSet, args []string) (settings []file.Pair, err error) {
	read := flags.Lookup("read").Changed
	if (len(args) == 1) == read {
		return nil, exit.Failf(exit.Usage, "`scaffold lab topology --help` lists the generators", "which network? the name of a generator, or --read FILE")
	}
	if !read {
		settings = append(settings, file.Pair{Key: "generate", Value: args[0]})
	}
	flags.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "summary", "node-link", "output":
		case "read":
			settings = append(settings, file.Pair{Key: "file", Value: f.Value.String()})
		default:
			settings = append(settings, file.Pair{Key: f.Name, Value: f.Value.String()})
		}
	})
	return settings, nil
}

func writeNodeLink(w io.Writer, g *topo.Graph) error {
	text, err := g.NodeLink()
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", text)
	}
	return err
}

func writeTopology(w io.Writer, t *file.Topology) error {
	text, err := t.LabFile()
	if err != nil {
		return exit.Fail(exit.Usage, "", err)
	}
	for line := range strings.Lines(summaryText(t.Graph.Summary())) {
		fmt.Fprint(w, "# ", line)
	}
	_, err = fmt.Fprint(w, text)
	return err
}

// summaryText is for people.
func summaryText(s topo.Summary) string {
	var text strings.Builder
	name := s.Name
	if name == "" {
		name = "a network"
	}
	fmt.Fprintf(&text, "%s: %s, %s", strings.Trim(fmt.Sprintf("%q", name), `"`), command.Count(uint32(s.Nodes), "node"), command.Count(uint32(s.Links), "link"))
	if s.Parallel > 0 {
		fmt.Fprintf(&text, ", %d of them beside another", s.Parallel)
	}
	exact := ""
	if s.Sampled {
		exact = ", from some nodes"
	}
	fmt.Fprintf(&text, "\nlinks at a node: %d to %d, mean %.2f\npaths: mean %.2f links, the longest %d%s\n",
		s.Degree.Min, s.Degree.Max, s.Degree.Mean, s.Hops, s.Diameter, exact)
	if s.Length > 0 {
		fmt.Fprintf(&text, "length of all links: %.0f km, %d of %d nodes have positions\n", s.Length, s.Placed, s.Nodes)
	}
	if s.Delayed > 0 {
		fmt.Fprintf(&text, "delays of %s: %v to %v\n", command.Count(uint32(s.Delayed), "link"), s.MinDelay, s.MaxDelay)
	}
	return text.String()
}
