/** The page begins here: its styles, the list of tables, and the frame. */

import { render } from "preact";

import "./styles/tokens.css";
import "./styles/shell.css";
import "./styles/collection.css";
import "./styles/forms.css";
import "./styles/touch.css";
import "./theme";
import { keepFocus } from "./focus";
import { App } from "./shell/app";
import { refreshTables } from "./session";

void refreshTables();
keepFocus();
render(<App />, document.getElementById("app")!);
