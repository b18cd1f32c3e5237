package solver

// prefetch loads the dependencies of the versions that are likely to be selected, and orders
// packages so that dependents are decided before their dependencies. Otherwise a search often
// selects a version of a dependency that is too new for a dependent that it finds later.
func (s *search) prefetch() error {
	var open, after []int
	likely := map[int]int{}
	meet := func(to int, fit set) {
		if _, ok := likely[to]; ok || fit.empty() {
			return
		}
		v := s.variables[to]
		likely[to] = v.best(v.state.and(fit), func() bool { return true })
		open = append(open, to)
	}
	for _, r := range s.roots {
		if r.Optional {
			continue
		}
		n := s.numbers[r.Package]
		meet(n, s.variables[n].all)
	}
	next, optional := map[int][]int{}, map[int][]string{}
	for len(open) > 0 {
		pkg := open[0]
		open = open[1:]
		i := likely[pkg]
		if i == 0 {
			continue
		}
		if err := s.loadDependencies(pkg, i); err != nil {
			return err
		}
		s.enqueue(pkg)
		for _, d := range s.store.cachedDependencies(s.variables[pkg].name, s.variables[pkg].candidates[i].pin()).deps {
			if d.Optional {
				optional[pkg] = append(optional[pkg], d.Package)
				continue
			}
			to := s.numbers[d.Package]
			next[pkg] = append(next[pkg], to)
			meet(to, s.variables[to].fitting(d.Constraint, s.store.constraint(d.Constraint)))
		}
		after = append(after, pkg)
	}
	for _, pkg := range after {
		for _, name := range optional[pkg] {
			if to, ok := s.numbers[name]; ok {
				next[pkg] = append(next[pkg], to)
			}
		}
	}
	s.orderDecisions(after, next)
	return nil
}

// orderDecisions numbers packages so that each comes before its dependencies, except in
// cycles.
func (s *search) orderDecisions(packages []int, next map[int][]int) {
	type frame struct{ pkg, next int }
	seen := make([]bool, len(s.variables))
	place := len(packages)
	for i := len(packages) - 1; i >= 0; i-- {
		if seen[packages[i]] {
			continue
		}
		seen[packages[i]] = true
		path := []frame{{pkg: packages[i]}}
		for len(path) > 0 {
			f := &path[len(path)-1]
			if f.next == len(next[f.pkg]) {
				place--
				s.variables[f.pkg].order = place
				path = path[:len(path)-1]
				continue
			}
			to := next[f.pkg][f.next]
			f.next++
			if !seen[to] {
				seen[to] = true
				path = append(path, frame{pkg: to})
			}
		}
	}
}
