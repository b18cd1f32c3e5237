package lock

import "time"

const (
	// part is the part of the time that writes may use: one of five.
	part = 5
	// mostPause is the longest pause after a write.
	mostPause = time.Second
)

// A pace limits the writes of the packages of the Lock. Each write sends all packages, so the work for many packages
// that change at once would grow with the square of their number. After a single change, the pause delays nothing.
type pace struct {
	// next is the earliest time of the next write.
	next time.Time
}

// wrote sets the time of the next write after a write.
func (p *pace) wrote(began, ended time.Time) {
	p.next = ended.Add(min((part-1)*ended.Sub(began), mostPause))
}
