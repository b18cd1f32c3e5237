package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
)

// Table is a table of text. On a terminal, its lines fit: it breaks the text of the last cell of a row, shortens other
// cells, and leaves out columns.
type Table struct {
	// Header are the columns. A table without one has no header.
	Header []string
	// WideHeader are the additional columns of -o wide.
	WideHeader []string
	// Least are the columns that a narrow terminal does not show, the least important one first.
	Least []string
	// Rows have a cell for each column. Further cells, such as those of -o wide, are not written.
	Rows [][]string
	// Empty is the line for a table without rows.
	Empty string
	// Indent precedes each line, and Distance is the number of spaces between columns. Default are none and three.
	Indent   string
	Distance int
	// IsWide reports that the table can be wider than the terminal, and HidesHeader that it is written without its header.
	IsWide, HidesHeader bool
}

const (
	// distance and near are the distances of columns, in cells, if there is room for the table or not.
	distance, near = 3, 2
	// leastText and leastCell are the widths to which the text of the last column and other cells are shortened before
	// columns are left out.
	leastText, leastCell = 40, 20
	// leastName is the width of the first column.
	leastName = 48
)

// WriteTable writes a table with aligned columns. A table without columns in its header has no header.
func WriteTable(w io.Writer, header []string, rows [][]string) {
	Table{Header: header, Rows: rows}.Write(w)
}

// Write writes the table. Cells have no control characters that affect a terminal. Streams of commands record their
// errors.
func (t Table) Write(w io.Writer) { _, _ = t.Begin(w) }

// Begin writes the table, and returns a writer of further rows.
func (t Table) Begin(w io.Writer) (*Rows, error) {
	rows := newRows(w, t)
	for _, row := range append([][]string{t.header()}, t.Rows...) {
		if err := rows.Write(row...); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// header returns the header as it is written.
func (t Table) header() []string {
	if t.HidesHeader {
		return nil
	}
	return t.Header
}

// Rows writes the rows of a table one at a time. A column is as wide as its widest cell so far.
type Rows struct {
	w     io.Writer
	table Table
	// widths are the widths of the columns with all their text, and short with short digests.
	widths, short []int
	// left are the columns that are left out.
	left []bool
	// isText reports whether the last column has text with spaces.
	isText bool
}

func newRows(w io.Writer, t Table) *Rows {
	r := &Rows{w: w, table: t}
	count := len(t.Header)
	if count == 0 {
		for _, row := range t.Rows {
			count = max(count, len(row))
		}
	}
	r.widths, r.short, r.left = make([]int, count), make([]int, count), make([]bool, count)
	r.widen(t.header())
	for _, row := range t.Rows {
		r.widen(r.safe(row))
	}
	return r
}

// widen makes the columns wide enough for cells. The last cell of a short row can extend over the columns after it.
func (r *Rows) widen(cells []string) {
	last := len(r.widths) - 1
	for i, cell := range cells {
		if i < len(cells)-1 || i == last {
			r.widths[i] = max(r.widths[i], terminal.Cells(cell))
			r.short[i] = max(r.short[i], terminal.Cells(terminal.ShortenDigests(cell)))
		}
		r.isText = r.isText || i == last && strings.Contains(cell, " ")
	}
}

// fit returns the widths and the distance of the columns for a number of cells in a line.
func (r *Rows) fit(room int) (widths []int, gap int) {
	usual := cmp.Or(r.table.Distance, distance)
	near := min(usual, near)
	for _, gap := range []int{usual, near} {
		if sum(r.widths, r.left, gap) <= room {
			return r.widths, gap
		}
	}
	least := make([]int, len(r.short))
	for i, width := range r.short {
		switch {
		case i == 0:
			least[i] = min(width, leastName)
		case i == len(least)-1 && r.isText:
			least[i] = min(width, leastText)
		default:
			least[i] = min(width, leastCell)
		}
	}
	for _, name := range r.table.Least {
		if sum(least, r.left, near) <= room {
			break
		}
		if i := slices.Index(r.table.Header, name); i >= 0 {
			r.left[i] = true
		}
	}
	// The widest columns are shortened first, and below their least widths only if all have them.
	for _, floor := range [][]int{r.floors(least), least, make([]int, len(least))} {
		for limit := room; limit > 0; limit-- {
			widths = make([]int, len(least))
			for i, width := range r.short {
				widths[i] = min(width, max(limit, floor[i]))
			}
			if sum(widths, r.left, near) <= room {
				return widths, near
			}
		}
	}
	return widths, near
}

// floors returns the widths to which columns are shortened first: only those that a narrow terminal does not show, and
// the text of the last one, become narrower.
func (r *Rows) floors(least []int) []int {
	out := slices.Clone(r.short)
	for i, width := range least {
		isLeast := i < len(r.table.Header) && slices.Contains(r.table.Least, r.table.Header[i])
		if isLeast || i == len(least)-1 && r.isText {
			out[i] = width
		}
	}
	return out
}

// sum returns the width of the columns that are not left out.
func sum(widths []int, left []bool, gap int) int {
	total := -gap
	for i, width := range widths {
		if !left[i] {
			total += width + gap
		}
	}
	return total
}

// Write writes a row. A row without cells writes nothing.
func (r *Rows) Write(row ...string) error {
	if len(row) == 0 {
		return nil
	}
	cells := r.safe(row)
	r.widen(cells)
	for len(cells) > 1 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	room := terminal.Unlimited
	if !r.table.IsWide {
		room = terminal.ColumnsOf(r.w) - terminal.Cells(r.table.Indent)
	}
	widths, gap := r.fit(room)
	line, used := r.table.Indent, 0
	for i, cell := range cells {
		switch {
		case r.left[i]:
		case i < len(cells)-1:
			cell = clip(cell, widths[i])
			line += cell + strings.Repeat(" ", widths[i]-terminal.Cells(cell)+gap)
			used += widths[i] + gap
		case strings.Contains(cell, " ") || len(r.table.Header) == 0:
			line += strings.Join(broken(cell, room-used), "\n"+r.table.Indent+strings.Repeat(" ", used))
		default:
			line += clip(cell, room-used)
		}
	}
	_, err := fmt.Fprintln(r.w, strings.TrimRight(line, " "))
	return err
}

// clip shortens a cell: text with spaces at its end, and others in the middle.
func clip(cell string, width int) string {
	if terminal.Cells(cell) <= width {
		return cell
	}
	if cell = terminal.ShortenDigests(cell); strings.Contains(cell, " ") {
		return terminal.Clip(cell, width)
	}
	return terminal.ClipMiddle(cell, width)
}

// broken returns the last cell of a row as lines. It also breaks words that are longer than a line, except commands
// that users copy.
func broken(cell string, width int) []string {
	if terminal.Cells(cell) <= width {
		return []string{cell}
	}
	width = max(width, 2) // A character can take two cells.
	var lines []string
	for _, line := range terminal.Fill(cell, width) {
		for !strings.Contains(line, "`") && terminal.Cells(line) > width {
			var first string
			first, line = terminal.Split(line, width)
			lines = append(lines, first)
		}
		lines = append(lines, line)
	}
	return lines
}

// safe returns the cells of a row in the columns of the table, each for one line of a terminal.
func (r *Rows) safe(row []string) []string {
	cells := make([]string, min(len(row), len(r.widths)))
	for i := range cells {
		cells[i] = terminal.SafeLine(row[i])
	}
	return cells
}
