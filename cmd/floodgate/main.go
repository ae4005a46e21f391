// Command floodgate works with policy files of package policy: it checks and explains them, replays
// access logs through them, and shows the counters of a running service.
//
//	floodgate check limits.yaml
//	floodgate explain limits.yaml --method POST --path /login --header 'X-Api-Key: k'
//	floodgate replay limits.yaml access.log --format html > report.html
//	floodgate inspect limits.yaml --store redis://127.0.0.1:6379/0 --policy api --key 192.0.2.1
//	floodgate reset limits.yaml --store redis://127.0.0.1:6379/0 --policy api --key 192.0.2.1
//	floodgate grant limits.yaml --store redis://127.0.0.1:6379/0 --policy api --key 192.0.2.1 --hits 50
//	floodgate block limits.yaml --store redis://127.0.0.1:6379/0 --policy api --key 192.0.2.1 --for 30m
//	floodgate top limits.yaml
//	floodgate import mulesoft.yaml
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

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

// interruptible runs the program until it ends or is interrupted. After an interrupt it does not
// wait for run, which may be reading a pipe that has no writer.
func interruptible(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, in, out, errs) }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
		return exitInterrupted
	}
}

// errUsage is wrapped by errors of the command line.
var errUsage = errors.New("usage")

// run is the program.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	started := false // the command line has no mistake
	// go-redis and key functions write log lines beside the error of the command.
	logging.Disable()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	root := &cobra.Command{
		Use: "floodgate COMMAND",
		Long: "floodgate checks and explains policy files, replays access logs through them, and shows the counters of a running service.\n\n" +
			"Exit status: 0 for success; 1 if a file has a mistake or the command failed; 2 if the command line is wrong; 130 after an interrupt.",
		SilenceUsage:  true,
		SilenceErrors: true,

		DisableSuggestions: true, // they have several lines
		PersistentPreRun:   func(*cobra.Command, []string) { started = true },
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	root.AddCommand(checkCommand(), explainCommand(), replayCommand(), schemaCommand(), inspectCommand(), resetCommand(), grantCommand(), blockCommand(), topCommand(), importCommand())
	called, err := root.ExecuteContextC(ctx)
	if err != nil && !started {
		err = fmt.Errorf("%w: %w (want %s)", errUsage, err, called.UseLine())
	}
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintln(errs, report.Lines(err.Error()))
		return exitUsage
	case len(policy.Errors(err)) > 0:
		for _, e := range policy.Errors(err) {
			printMistake(errs, e)
		}
	default:
		_, _ = fmt.Fprintln(errs, report.Lines("floodgate: "+err.Error()))
	}
	return exitFailed
}
