package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/mulesoft"
)

func importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Translate rate limiting policies of MuleSoft into a policy file",
		Long: "import reads a YAML file of MuleSoft's Flex Gateway with rate limiting or spike control policies, and writes a policy file to the standard output.\n" +
			"- is the standard input. The policy file has a comment for each difference. What has no equivalent is reported too, and the exit status is then 1.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name, in := "standard input", c.InOrStdin()
			if args[0] != "-" {
				f, err := os.Open(args[0]) //nolint:gosec // the user has named it
				if err != nil {
					return err
				}
				defer f.Close() //nolint:errcheck // it was read only
				name, in = args[0], f
			}
			text, err := io.ReadAll(io.LimitReader(in, mulesoft.MaxBytes+1))
			if err != nil {
				return err
			}
			result, err := mulesoft.Import(text)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			_, err = c.OutOrStdout().Write(result.Text)
			errs := []error{err}
			for _, lost := range result.Lost {
				errs = append(errs, fmt.Errorf("%s: not translated: %s", name, lost))
			}
			return errors.Join(errs...)
		},
	}
}
