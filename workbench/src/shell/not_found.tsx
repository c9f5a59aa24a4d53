/** What an address shows that leads nowhere: what was not found, and links to what there is. */

import type { ComponentChildren } from "preact";

import { href } from "../router";

interface Link {
  title: string;
  path: string[];
}

interface Props {
  title: string;
  links: Link[];
  /** Above the links: what they lead to. */
  there: string;
  children: ComponentChildren;
}

const MOST = 24; // links

export function NotFound({ title, links, there, children }: Props) {
  return (
    <div class="over">
      <div class="empty wide not-found">
        <h2>{title}</h2>
        <p>{children}</p>
        {links.length > 0 && (
          <nav aria-label={there}>
            <h3>{there}</h3>
            <ul>
              {links.slice(0, MOST).map((each) => (
                <li key={each.path.join("/")}>
                  <a href={href(each.path)}>{each.title}</a>
                </li>
              ))}
            </ul>
            {links.length > MOST && <p>and {links.length - MOST} more, in the list at the left</p>}
          </nav>
        )}
      </div>
    </div>
  );
}

/** The names in the order of their likeness to what was asked for: those that share the most pairs of letters first. */
export function nearest(asked: string, names: string[]): string[] {
  const wanted = pairs(asked);
  const likeness = (name: string) => [...pairs(name)].filter((each) => wanted.has(each)).length / (pairs(name).size || 1);
  return [...names].sort((one, other) => likeness(other) - likeness(one));
}

function pairs(text: string): Set<string> {
  const letters = text.toLowerCase();
  return new Set(Array.from({ length: Math.max(0, letters.length - 1) }, (_, place) => letters.slice(place, place + 2)));
}
