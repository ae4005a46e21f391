//go:build unix

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"strconv"
)

// scriptFiles reads the list of the script's files, in their order, from the Go
// file that has it as the variable scriptFiles.
func scriptFiles(path string) (names []string, err error) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || v.Names[0].Name != "scriptFiles" {
			return true
		}
		ast.Inspect(v, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == gotoken.STRING {
				name, _ := strconv.Unquote(l.Value) // the parser has checked it
				names = append(names, name)
			}
			return true
		})
		return false
	})
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: there is no list scriptFiles", path)
	}
	return names, nil
}
