package longpath

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"scaffold.dev/scaffold/internal/lab/agents"
)

// workersDie kills the worker of each agent in turn while a file comes.
func workersDie(ctx context.Context, s *show) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f, err := s.curl(ctx)
	if err != nil {
		return "", false, err
	}
	for i, name := range []string{"x", "y"} {
		err := f.reaches(ctx, int64(large/4*(i+1)))
		if err == nil {
			err = s.agents.KillWorker(name)
		}
		if err != nil {
			return "", false, errors.Join(err, f.cmd.Wait())
		}
		s.say("the worker of agent %s was killed", name)
	}
	if err := f.cmd.Wait(); err != nil {
		return fmt.Sprintf("curl: %v: %s", err, f.said.String()), false, nil
	}
	right := f.right(s.files.sum)
	return fmt.Sprintf("one curl, the file is right: %v", right), right, nil
}

// resetCode is curl's exit code where a connection is reset; 18 would be that of one which ended too early.
const resetCode = 56

// agentDies kills both processes of the client's agent while a file comes, and then starts it again.
func agentDies(ctx context.Context, s *show) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f, err := s.curl(ctx)
	if err != nil {
		return "", false, err
	}
	if err := f.reaches(ctx, large/4); err != nil {
		return "", false, errors.Join(err, f.cmd.Wait())
	}
	restart, end := revival(func(ctx context.Context) error { return s.agents.Restart(ctx, "x") })
	defer end()
	err = s.agents.Kill("x")
	ended := f.cmd.Wait()
	if err != nil {
		return "", false, errors.Join(err, ended)
	}
	code := f.cmd.ProcessState.ExitCode()
	if err := restart(ctx); err != nil {
		return "", false, err
	}
	said, _, _ := strings.Cut(f.said.String(), "\n")
	seen := fmt.Sprintf("curl's exit code is %d: %s", code, said)
	return seen + "; started again, the agent carries again", code == resetCode, nil
}

// controllerDies kills the controller while a file comes, and starts it again behind a second file that begins without it.
func controllerDies(ctx context.Context, s *show) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*patience) // two downloads, and switches that look for their controller each 8 s
	defer cancel()
	d := s.agents.(*agents.Driven) // a lab without a controller has no such step
	f, err := s.curl(ctx)
	if err != nil {
		return "", false, err
	}
	if err := f.reaches(ctx, large/4); err != nil {
		return "", false, errors.Join(err, f.cmd.Wait())
	}
	start, end := revival(func(ctx context.Context) error { return d.Act(ctx, "start ctl") })
	defer end()
	if err := d.Act(ctx, "kill ctl"); err != nil {
		return "", false, errors.Join(err, f.cmd.Wait())
	}
	ended := f.cmd.Wait()
	meanwhile, err := s.curl(ctx) // agents and switches go on with what they were told
	if err != nil {
		return "", false, err
	}
	second := meanwhile.cmd.Wait()
	if err := start(ctx); err != nil {
		return "", false, err
	}
	if err := d.Carries(ctx); err != nil {
		return "", false, err
	}
	if ended != nil || second != nil {
		return fmt.Sprintf("curl: %v, %v: %s%s", ended, second, f.said.String(), meanwhile.said.String()), false, nil
	}
	right := f.right(s.files.sum) && meanwhile.right(s.files.sum)
	return fmt.Sprintf("both files are right: %v; the second came without a controller, at %.0f Mbit/s", right, meanwhile.rate()), right, nil
}
