// Command growth draws the growth of the processor time with the number of CRDs as an SVG image, from the results of
// the benchmarks. It reads them from a file and writes the image to the standard output.
package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/testing/benchresult"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: growth RESULTS.json")
	}
	rows, err := benchresult.Read(args[0])
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s has no results", args[0])
	}
	_, err = io.WriteString(out, picture(rows))
	return err
}

// The sizes of the image in pixels.
const (
	panelWidth, panelHeight = 330, 230
	left, top, gap          = 50, 50, 60
	width                   = left + 3*panelWidth + 2*gap + 30
	height                  = top + panelHeight + 75
)

// The colors of the bare client, xpkg and Crossplane core.
const bareColor, xpkgColor, coreColor = "#8c8c8c", "#2864c8", "#d2691e"

// A curve is an operation whose processor time is drawn over the sizes.
type curve struct{ key, label, color, dash string }

// picture returns the image: two panels of growth, and the comparison with Crossplane core.
func picture(rows []benchresult.Row) string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+
			"\n",
		width, height,
	)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	growth(&b, 0, "API server: processor time of installs and upgrades", rows, []curve{
		{"bare-install", "bare client: create", bareColor, "4 3"}, {"install", "xpkg: install", xpkgColor, ""},
		{"upgrade", "xpkg: upgrade of a tenth", xpkgColor, "2 3"},
	})
	growth(&b, 1, "API server: processor time of removals", rows, []curve{
		{"bare-removal", "bare client: delete", bareColor, "4 3"}, {"removal", "xpkg: uninstall", xpkgColor, ""},
	})
	comparison(&b, 2, rows)
	b.WriteString("</svg>\n")
	return b.String()
}

// growth draws one panel: the processor time in seconds over the number of CRDs.
func growth(b *strings.Builder, panel int, title string, rows []benchresult.Row, curves []curve) {
	x0, y0 := heading(b, panel, title)
	var most float64
	largest := 0
	for _, c := range curves {
		for _, r := range of(rows, c.key) {
			most, largest = max(most, r.Server), max(largest, r.Size)
		}
	}
	most = ceiling(most)
	x := func(size int) float64 {
		return float64(x0) + float64(panelWidth)*float64(size)/float64(max(largest, 1))
	}
	y := func(seconds float64) float64 { return float64(y0) + panelHeight*(1-seconds/most) }
	for i := range 5 {
		value := most * float64(i) / 4
		line(b, float64(x0), y(value), float64(x0+panelWidth), y(value), "#dddddd", "")
		text(b, float64(x0-6), y(value)+4, "end", "#444444", fmt.Sprintf("%.4g s", value))
	}
	for i, c := range curves {
		var points []string
		for _, r := range of(rows, c.key) {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(r.Size), y(r.Server)))
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(r.Size), y(r.Server), c.color)
			if i == 0 {
				text(b, x(r.Size), float64(y0+panelHeight+16), "middle", "#444444", fmt.Sprint(r.Size))
			}
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+
			"\n", strings.Join(points, " "), c.color, c.dash)
		at := float64(y0 + 16 + 18*i)
		line(b, float64(x0+10), at-4, float64(x0+34), at-4, c.color, c.dash)
		text(b, float64(x0+40), at, "start", "#222222", c.label)
	}
	text(b, float64(x0)+panelWidth/2, float64(y0+panelHeight+36), "middle", "#444444", "number of CRDs")
}

// comparison draws the processor time of the API server for the operations of the comparison, as bars.
func comparison(b *strings.Builder, panel int, rows []benchresult.Row) {
	contenders := []struct{ name, color string }{{"bare client", bareColor}, {"xpkg", xpkgColor}, {
		"Crossplane core", coreColor,
	}}
	operations := []string{"install", "upgrade, a tenth changed", "removal"}
	value := func(contender, operation string) (benchresult.Row, bool) {
		for _, r := range rows {
			if r.Group == "comparison" && r.Key == contender+": "+operation {
				return r, true
			}
		}
		return benchresult.Row{}, false
	}
	var most float64
	size := 0
	for _, c := range contenders {
		for _, op := range operations {
			if r, ok := value(c.name, op); ok {
				most, size = max(most, r.Server), r.Size
			}
		}
	}
	x0, y0 := heading(b, panel, fmt.Sprintf("The same next to Crossplane core, %d CRDs", size))
	y := float64(y0)
	for _, op := range operations {
		text(b, float64(x0), y+12, "start", "#222222", op)
		y += 18
		for _, c := range contenders {
			r, ok := value(c.name, op)
			if !ok {
				continue
			}
			long := (panelWidth - 140) * r.Server / most
			fmt.Fprintf(b, `<rect x="%d" y="%.1f" width="%.1f" height="14" fill="%s"/>`+"\n", x0, y, long, c.color)
			text(b, float64(x0)+long+6, y+11, "start", "#222222", fmt.Sprintf("%.1f s, %s", r.Server, c.name))
			y += 18
		}
		y += 10
	}
}

// heading writes the title of a panel, and returns its origin.
func heading(b *strings.Builder, panel int, title string) (x, y int) {
	x = left + panel*(panelWidth+gap)
	fmt.Fprintf(b, `<text x="%d" y="26" font-size="13" font-weight="bold" fill="#222222">%s</text>`+
		"\n", x, escaped(title))
	return x, top
}

// of returns the rows of an operation on packages of CRDs, which are sorted by size.
func of(rows []benchresult.Row, key string) []benchresult.Row {
	var out []benchresult.Row
	for _, r := range rows {
		if r.Group == "crds" && r.Key == key {
			out = append(out, r)
		}
	}
	return out
}

// ceiling returns the next number above a value with one digit, for the scale of an axis.
func ceiling(value float64) float64 {
	if value <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(value)))
	return math.Ceil(value/unit) * unit
}

func line(b *strings.Builder, x1, y1, x2, y2 float64, color, dash string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+
		"\n", x1, y1, x2, y2, color, dash)
}

func text(b *strings.Builder, x, y float64, anchor, color, value string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+
		"\n", x, y, anchor, color, escaped(value))
}

func escaped(value string) string {
	var out strings.Builder
	if err := xml.EscapeText(&out, []byte(value)); err != nil {
		return ""
	}
	return out.String()
}
