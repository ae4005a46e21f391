// Command floodgate works with policy files of package policy: it checks and
// explains them, replays access logs through them, and shows the counters of a
// running service.
//
//	floodgate check limits.yaml
//	floodgate explain limits.yaml --method POST --path /login --header 'X-Api-Key: k'
//	floodgate replay limits.yaml access.log --format html --output report.html
//	floodgate inspect limits.yaml --store redis://127.0.0.1:6379/0 --policy api --key 192.0.2.1
//	floodgate reset limits.yaml --store redis://127.0.0.1:6379/0 --policy api --key 192.0.2.1
//	floodgate grant limits.yaml --store redis://127.0.0.1:6379/0 --policy api --key 192.0.2.1 --hits 50
//	floodgate block limits.yaml --store redis://127.0.0.1:6379/0 --policy api --key 192.0.2.1 --for 30m
//	floodgate top limits.yaml --interval 2s
//	floodgate import mulesoft.yaml
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/policy"
)

func main() { os.Exit(interruptible(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// The exit statuses.
const (
	exitFine        = 0
	exitFailed      = 1 // the command failed, or a file has a mistake
	exitUsage       = 2
	exitInterrupted = 130
)

const exitStatuses = `

Exit status: 0 for success; 1 if a file has a mistake or the command failed; 2 if the command line is wrong; 130 after an interrupt.`

// grace is how long a command that is interrupted may take to remove what it has
// begun to write.
const grace = 300 * time.Millisecond

// interruptible runs the program until it ends or is interrupted. Work that
// does not look at its context, such as reading a pipe without a writer, ends
// with the process.
func interruptible(args []string, in io.Reader, out, errs io.Writer) int {
	logging.Disable() // go-redis logs each failed connection, beside the error of the command
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, in, out, errs) }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
	}
	select {
	case <-ended:
	case <-time.After(grace):
	}
	return exitInterrupted
}

// errUsage is wrapped by errors of the command line.
var errUsage = errors.New("usage")

// flagError returns an error that describes the valid values of a flag.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		f := invalid.GetFlag()
		if want := map[string]string{"int": "a whole number", "int64": "a whole number", "bool": "true or false", "duration": "a duration such as 5m"}[f.Value.Type()]; want != "" {
			err = fmt.Errorf("--%s: %q: want %s", f.Name, invalid.GetValue(), want)
		}
	}
	return fmt.Errorf("%w: %w", errUsage, err)
}

// run is the program.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	root := &cobra.Command{
		Use:           "floodgate",
		Short:         "Work with rate limit policies",
		Long:          "floodgate checks and explains policy files, replays access logs through them, and shows the counters of a running service." + exitStatuses,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,

		SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			hint := ""
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				hint = ": did you mean " + near[0] + "?"
			}
			return fmt.Errorf("%w: unknown command %q%s", errUsage, args[0], hint)
		},
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(checkCommand(), explainCommand(), replayCommand(), schemaCommand(), inspectCommand(), resetCommand(), grantCommand(), blockCommand(), topCommand(), importCommand())
	for _, c := range root.Commands() {
		args := c.Args
		c.Args = func(c *cobra.Command, given []string) error {
			if err := args(c, given); err != nil {
				return fmt.Errorf("%w: %w: %s", errUsage, err, c.UseLine())
			}
			return nil
		}
	}
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintln(errs, report.Lines(err.Error()))
		return exitUsage
	case len(policy.Errors(err)) > 0:
		for _, e := range policy.Errors(err) {
			_, _ = fmt.Fprintln(errs, report.Lines(e.Error()))
		}
	default:
		_, _ = fmt.Fprintln(errs, report.Lines("floodgate: "+err.Error()))
	}
	return exitFailed
}
