// The extension in real VS Code: one VS Code and one browser for all scenes, a window and a project for each.
import "./answers";
import "./inputs";
import "./files";
import "./life";
