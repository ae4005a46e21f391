package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/mulesoft"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// read reads the beginning of a policy file or of a file of MuleSoft. It reads one byte more
// than a policy file may have, so that a file that is too long is an error. The file may be a
// pipe, as a shell's <(command) is.
func read(name string) ([]byte, error) {
	const most = 1 << 20
	f, err := os.Open(name) //nolint:gosec // the user has named it
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	return io.ReadAll(io.LimitReader(f, most+1))
}

// load reads a policy file. It opens no store of the file. The file may use users and
// tiers, although only the program of the service knows them.
func load(path string, store core.Store, opts ...policy.Option) (*policy.Set, error) {
	text, err := read(path)
	if err != nil {
		return nil, err
	}
	return policy.Parse(path, text, append([]policy.Option{
		policy.WithStore(store),
		policy.WithUser(func(core.Request) string { return "" }),
		policy.WithTier(func(core.Request) (string, error) { return "", nil }),
	}, opts...)...)
}

// withMemory calls use with the policies of a file. They count in memory.
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
		Short: "Report all mistakes in policy files",
		Long: "check reads policy files and reports all mistakes, one on each line: file:line:column: field: problem (what to write instead).\n" +
			"It opens no store and needs no password. A warning is about a setting that is legal and probably a mistake.\n" +
			"The exit status is 1 if a file has a mistake. With --strict, it is also 1 if a file has warnings.",
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
					found, count := "no errors", report.Plural(int64(len(warnings)), "warning", "warnings")
					if len(warnings) > 0 {
						found += ", " + count
					}
					policies := report.Plural(int64(len(set.Policies())), "policy", "policies")
					err := printFine(c.OutOrStdout(), fmt.Sprintf("%s: %s, %s", report.Plain(file), policies, found))
					if strict && len(warnings) > 0 {
						err = errors.Join(err, fmt.Errorf("%s: %s: --strict treats warnings as errors", file, count))
					}
					return err
				})
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	return c
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of policy files",
		Long:  "schema prints the JSON Schema of policy files, for editors that complete them. It checks each field and the type of its value; check finds every mistake.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(policy.Schema())
			return err
		},
	}
}

func importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Translate rate limiting policies of MuleSoft into a policy file",
		Long: "import reads a YAML file of MuleSoft's Flex Gateway with rate limiting or spike control policies, and writes a policy file to the standard output. " +
			"If a part has no equivalent, import reports its place and writes nothing.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := read(args[0])
			if err != nil {
				return err
			}
			if text, err = mulesoft.Import(args[0], text); err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
}
