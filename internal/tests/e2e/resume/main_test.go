package resume

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) // the lab starts its daemons from it
	}
	nstest.MainAround(m, func(run func() int) int {
		code := run()
		if err := takeDown(); err != nil {
			fmt.Fprintln(os.Stderr, "resume: take the lab down:", err)
			return 1
		}
		return code
	})
}

// shared is the one lab of all tests and the servers of examples/resume, built once.
var shared struct {
	once  sync.Once
	lab   *lab.Lab
	admin apiv1connect.AdminClient
	bin   string
	err   error
}

func bringUp() (err error) {
	if shared.bin, err = os.MkdirTemp("", "scaffold-resume-"); err != nil {
		return err
	}
	out, err := exec.Command("go", "build", "-o", shared.bin, "../../../../examples/resume/httpd", "../../../../examples/resume/tftpd").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the servers: %w\n%s", err, out)
	}
	f, err := file.Load("testdata/resume.yaml")
	if err != nil {
		return err
	}
	f.Name = nstest.LabName()
	if shared.lab, err = lab.Up(context.Background(), f, lab.Options{}); err != nil {
		return err
	}
	shared.admin, err = shared.lab.Admin()
	return err
}

// takeDown removes the lab and everything that runs in it.
func takeDown() error {
	os.RemoveAll(shared.bin)
	if shared.lab == nil {
		return nil
	}
	return lab.Down(context.Background(), shared.lab.File.Name, lab.Options{})
}
