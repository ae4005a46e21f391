package doctest

import (
	"regexp"
	"strings"
)

// command is a command of a console block.
type command struct {
	line string // behind "$ "
	at   int    // its line in the page
	want string // what it prints
}

// commands returns the commands of a console block.
func (b *Block) commands() []command {
	var commands []command
	if b.Lang != "console" {
		return nil
	}
	for i, line := range strings.Split(strings.TrimSuffix(b.Text, "\n"), "\n") {
		if rest, ok := strings.CutPrefix(line, "$ "); ok {
			commands = append(commands, command{line: rest, at: b.Line + i})
		} else if n := len(commands); n > 0 {
			commands[n-1].want += line + "\n"
		}
	}
	return commands
}

// wanted returns what a program prints whose output the block has.
func (b *Block) wanted() string {
	if commands := b.commands(); len(commands) > 0 {
		return commands[0].want
	}
	return b.Text
}

// same compares what was printed with what the block has. It returns "" if they agree, else both.
func (b *Block) same(got, want string) string {
	if pattern := b.Directives["varies"]; pattern != "" {
		varies, err := regexp.Compile(pattern)
		if err != nil {
			return "the comment varies: " + err.Error()
		}
		got, want = varies.ReplaceAllLiteralString(got, "(varies)"), varies.ReplaceAllLiteralString(want, "(varies)")
	}
	g, w := linesOf(got), linesOf(want)
	if matchLines(g, w) {
		return ""
	}
	return "printed\n" + indent(g) + "the document has\n" + indent(w)
}

func linesOf(text string) []string {
	lines := strings.Split(strings.TrimRight(text, " \n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \r")
	}
	return lines
}

// matchLines compares lines; "..." among those that are wanted stands for any number of lines.
func matchLines(got, want []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		for n := 0; n <= len(got); n++ {
			if matchLines(got[n:], want[1:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && got[0] == want[0] && matchLines(got[1:], want[1:])
}

func indent(lines []string) string {
	return "\t" + strings.Join(lines, "\n\t") + "\n"
}
