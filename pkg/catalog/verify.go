package catalog

// verify fails with ErrInvalidIndex if the rows of a catalog contradict each other.
func (c *Catalog) verify() error {
	if len(c.Packages) != len(c.Histories) {
		return ErrInvalidIndex.New(nil, "the index has %d packages and %d histories", len(c.Packages), len(c.Histories))
	}
	kinds := map[string]int{}
	for i := range c.Kinds {
		kinds[c.Kinds[i].Repository]++
	}
	for i := range c.Packages {
		if err := c.Packages[i].verify(&c.Histories[i], kinds[c.Packages[i].Repository]); err != nil {
			return err
		}
		delete(kinds, c.Packages[i].Repository)
	}
	if len(kinds) > 0 {
		return ErrInvalidIndex.New(nil, "the index has kinds of %d packages that it does not contain", len(kinds))
	}
	return nil
}

func (p *Package) verify(h *History, kinds int) error {
	switch {
	case h.Repository != p.Repository:
		return ErrInvalidIndex.New(nil, "package %s has no history", p.Repository)
	case kinds != p.Kinds:
		return ErrInvalidIndex.New(nil, "the index has %d kinds of %s, its row states %d", kinds, p.Repository, p.Kinds)
	}
	return p.verifyHistory(h)
}

// verifyHistory fails with ErrInvalidIndex if the history of the package contradicts its row or itself.
func (p *Package) verifyHistory(h *History) error {
	if p.Latest != "" && h.Find(p.Latest) == nil {
		return ErrInvalidIndex.New(nil, "the newest version of %s, %.100q, is not in its history", p.Repository, p.Latest)
	}
	_, err := h.served()
	return err
}
