package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/policy"
)

// load reads a policy file without opening its store. What only the program
// knows, users and tiers, is taken to be there.
func load(path string, store core.Store, opts ...policy.Option) (*policy.Set, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the user has named it
	if err != nil {
		return nil, err
	}
	return policy.Parse(path, text, append([]policy.Option{
		policy.WithStore(store),
		policy.Log(slog.New(slog.DiscardHandler)), // check prints the warnings
		policy.WithUser(func(core.Request) string { return "" }),
		policy.WithTier(func(core.Request) (string, error) { return "", nil }),
	}, opts...)...)
}

// withMemory loads a file over counters that end with use.
func withMemory(path string, use func(*policy.Set) error, opts ...policy.Option) error {
	memory, err := core.NewMemory(core.MemoryConfig{})
	if err != nil {
		return err
	}
	set, err := load(path, memory, opts...)
	if err != nil {
		return errors.Join(err, memory.Close())
	}
	return errors.Join(use(set), set.Close(), memory.Close())
}

func checkCommand() *cobra.Command {
	strict := false
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "Tell all that is wrong with policy files",
		Long: "check reads policy files and tells all that is wrong with them, a line each: file:line:column: field: problem (what would be right).\n" +
			"It opens no store, and needs no password. Warnings are of what is legal and probably a mistake. The exit status is 1 if a file has\n" +
			"something wrong with it; warnings alone leave it 0, unless --strict is given.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			var errs []error
			for _, file := range files {
				err := withMemory(file, func(set *policy.Set) error {
					warnings := set.Warnings()
					for _, w := range warnings {
						w.Problem = "warning: " + w.Problem
						if _, err := fmt.Fprintln(c.OutOrStdout(), report.Lines(w.Error())); err != nil {
							return err
						}
					}
					found := "nothing wrong"
					if len(warnings) > 0 {
						found = "no errors, " + plural(len(warnings), "warning", "warnings")
					}
					_, err := fmt.Fprintf(c.OutOrStdout(), "%s: %s, %s\n", report.Plain(file), plural(len(set.Policies()), "policy", "policies"), found)
					if strict && len(warnings) > 0 {
						err = errors.Join(err, fmt.Errorf("%s: has warnings", file))
					}
					return err
				})
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&strict, "strict", false, "take warnings for errors")
	return c
}

// plural writes a number and the word for so many.
func plural(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of policy files",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(policy.Schema())
			return err
		},
	}
}
