// Command generate writes the corpus of malformed package images as archives, one
// file for each case of the table.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/xpkg-dev/xpkg/internal/testing/malformed"
)

func main() {
	table := flag.String("table", "testdata/malformed/image/cases.yaml", "the table of cases")
	dir := flag.String("o", "", "the folder to write to")
	flag.Parse()
	if err := run(*table, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(table, dir string) error {
	if dir == "" {
		return fmt.Errorf("name the folder to write to with -o")
	}
	cases, err := malformed.Load(table)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range cases {
		if err := write(c, filepath.Join(dir, c.ID+".tar")); err != nil {
			return err
		}
	}
	return nil
}

func write(c malformed.Case, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := c.Write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
