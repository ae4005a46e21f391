package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/mulesoft"
)

func importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Translate rate limiting policies of MuleSoft into a policy file",
		Long: "import reads a YAML file of MuleSoft's Flex Gateway with rate limiting or spike control policies, and writes a policy file to the standard output.\n" +
			"- is the standard input. If a part has no equivalent, import reports its place and writes nothing.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			var text []byte
			name := args[0]
			if name == "-" {
				name = "standard input"
				text, err = io.ReadAll(io.LimitReader(c.InOrStdin(), mulesoft.MaxBytes+1))
			} else {
				text, err = readAtMost(name, mulesoft.MaxBytes)
			}
			if err != nil {
				return err
			}
			if text, err = mulesoft.Import(name, text); err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
}
