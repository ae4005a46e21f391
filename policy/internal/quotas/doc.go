// Package quotas reads tables of quotas: the quotas of single keys, such as
// customers, which take the place of those that a policy's limits have. A table
// does not change after it has been made, and may be used concurrently.
package quotas

// Problem is a mistake in a table, or something that is legal and probably one.
type Problem struct {
	Line, Column int    // from 1; of a table that is no file, Line is the number of the row and Column 0
	Text         string // describes the mistake and quotes the value, never the key: it may be a secret
	Hint         string // what to write instead; may be ""
}
