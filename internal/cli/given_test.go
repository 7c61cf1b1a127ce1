package cli

import (
	"testing"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command/commandtest"
)

func TestFlagsThatExcludeEachOtherAreRefused(t *testing.T) {
	commandtest.RefuseBoth(t, func() *cobra.Command { return New() })
}
