package view

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/testing/pty"
)

// whole is the width of a terminal with room for every table.
const whole = 10_000

// terminals are widths of terminals.
var terminals = []int{40, 80, 120, whole}

// On a terminal, no line of a table is wider than the terminal, and on a wide one the table is the same as in a file.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	words := []string{
		"", "a", "True", "provider/upbound-provider-aws-s3", "registry.example.org/acme/provider-with-a-long-name:v1.2.3",
		"sha256:" + strings.Repeat("0123456789abcdef", 4), "提供者提供者提供者",
		"the runtime of the package fails: it exits with the code 1, see its log",
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		header := []string{"NAME", "HEALTHY", "PACKAGE", "DIGEST", "MESSAGE"}[:1+random.IntN(5)]
		table := Table{Header: header, Least: []string{"DIGEST", "PACKAGE"}}
		for range 1 + random.IntN(4) {
			var row []string
			for range header {
				row = append(row, words[random.IntN(len(words))])
			}
			table.Rows = append(table.Rows, row)
		}
		table.HidesHeader = random.IntN(3) == 0
		if random.IntN(4) == 0 {
			table.Header, table.Indent = nil, "  "
		}
		var file strings.Builder
		table.Write(&file)
		for _, columns := range terminals {
			out, err := pty.Output(columns, func(slave *os.File) { table.Write(slave) })
			if err != nil {
				t.Fatal(err)
			}
			out = strings.ReplaceAll(out, "\r\n", "\n")
			widest := func(text string) (most int) {
				for line := range strings.Lines(text) {
					most = max(most, terminal.Cells(strings.TrimSuffix(line, "\n")))
				}
				return most
			}
			if got := widest(out); got > columns {
				t.Fatalf("a line has %d cells in %d columns:\n%s", got, columns, out)
			}
			if columns == whole && out != file.String() {
				t.Fatalf("the table in %d columns is\n%sand not\n%s", columns, out, file.String())
			}
		}
	}
}
